// The read-only paths below /projects/<project>. The server adds `as_of` to each response.

import { isLowerCaseUuid, isProjectId } from "../../../platform/base/forms.ts";
import { lettersApart, nearest, typosMax } from "../../../platform/base/near-name.ts";
import { storedIdText } from "../../../records/distinct-id.ts";
import {
  type EffectsReader,
  type Page,
  type PageOf,
  projectsMax,
  usageRowsMax,
} from "../store/port.ts";
import {
  badParameter,
  cursor,
  day,
  instantMs,
  pageLimit,
  pageLimitDefault,
  problem,
  type Readers,
  type ReadProblem,
  readParameters,
  someText,
  uuidCursor,
  type Read as Values,
} from "./parameters.ts";
import { groupJson, linkJson, personJson, spikeJson, usageMembers } from "./shapes.ts";

interface Asked {
  readonly reader: EffectsReader;
  readonly projectId: string;
  readonly uuid: string;
}

export type Members = string | ReadProblem;

type Route = (asked: Asked, query: URLSearchParams) => Promise<Members>;

/**
 * Maximum number of characters of the properties on a page. If this limit is reached, the page
 * contains fewer results than requested.
 */
const pageBytesMax = 4_194_304;
const everyDay = { from: "0000-01-01", to: "9999-12-31" } as const;

const personParameters = { distinct_id: idText, after: uuidCursor, limit: pageLimit };
const groupParameters = { type: idText, key: idText, after: cursor, limit: pageLimit };
const usageParameters = { from: day, to: day };
const spikeParameters = { from: instantMs, after: cursor, limit: pageLimit };

function idText(text: string): string {
  return storedIdText(someText(text));
}

const routes: Readonly<Record<string, Route>> = {
  persons: taking(personParameters, personOrPersons),
  "persons/*": taking({}, person),
  "persons/*/links": taking({}, links),
  groups: taking(groupParameters, groupOrGroups),
  "group-types": taking({}, groupTypes),
  usage: taking(usageParameters, usage),
  spikes: taking(spikeParameters, spikes),
};

export function routeOf(
  path: string,
): ((reader: EffectsReader, query: URLSearchParams) => Promise<Members>) | undefined {
  const [, projects, projectId = "", ...below] = path.split("/");
  if (projects !== "projects" || !isProjectId(projectId)) return undefined;
  const hasUuid = below[0] === "persons" && below.length > 1;
  const uuid = hasUuid ? (below[1] ?? "").toLowerCase() : "";
  if (hasUuid) below[1] = "*";
  const name = below.join("/");
  const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
  return route && ((reader, query) => route({ reader, projectId, uuid }, query));
}

function taking<R extends Readers>(
  readers: R,
  answer: (asked: Asked, values: Values<R>) => Promise<Members>,
): Route {
  return async (asked, query) => {
    const read = readParameters(query, readers);
    return "problem" in read ? read.problem : await answer(asked, read.values);
  };
}

async function personOrPersons(
  asked: Asked,
  { distinct_id: id, after, limit }: Values<typeof personParameters>,
): Promise<Members> {
  const { reader, projectId } = asked;
  if (id === undefined)
    return pageMembers(await reader.persons(projectId, pageOf({ after, limit })), personJson);
  if (after !== undefined || limit !== undefined) return onlyOfLists(after, "distinct_id");
  const found = await reader.personByDistinctId(projectId, id);
  return found === undefined
    ? await notFound(asked, "no person with this distinct id")
    : withoutBraces(personJson(found));
}

async function person(asked: Asked): Promise<Members> {
  const { reader, projectId, uuid } = asked;
  const found = isLowerCaseUuid(uuid) ? await reader.personByUuid(projectId, uuid) : undefined;
  return found === undefined ? await noSuchUuid(asked) : withoutBraces(personJson(found));
}

async function links(asked: Asked): Promise<Members> {
  const { reader, projectId, uuid } = asked;
  const found = isLowerCaseUuid(uuid) ? await reader.links(projectId, uuid) : undefined;
  return found === undefined
    ? await noSuchUuid(asked)
    : `"links":[${found.map(linkJson).join(",")}]`;
}

function noSuchUuid(asked: Asked): Promise<ReadProblem> {
  return notFound(
    asked,
    `no person with this uuid; to find a person by distinct id, use /projects/${asked.projectId}/persons?distinct_id=`,
  );
}

const suggestionsMax = 50;

async function notFound({ reader, projectId }: Asked, what: string): Promise<ReadProblem> {
  const known = await reader.projects();
  if (known.includes(projectId) || known.length >= projectsMax)
    return problem("not_found", `the project ${projectId} has ${what}`);
  const most = typosMax(projectId);
  // Comparing the id with more projects would take tens of milliseconds of CPU.
  const few = known.length > suggestionsMax ? [] : known;
  const near = nearest(few, (one) => lettersApart(projectId, one, most), most);
  const meant = near === undefined ? "" : `; did you mean ${near}?`;
  return problem("not_found", `no event of a project ${projectId} has been applied${meant}`);
}

async function groupOrGroups(
  asked: Asked,
  { type, key, after, limit }: Values<typeof groupParameters>,
): Promise<Members> {
  const { reader, projectId } = asked;
  if (type === undefined)
    return badParameter("type", "is required; /group-types lists the types of the project");
  if (key === undefined)
    return pageMembers(await reader.groups(projectId, type, pageOf({ after, limit })), groupJson);
  if (after !== undefined || limit !== undefined) return onlyOfLists(after, "key");
  const found = await reader.group({ projectId, type, key });
  return found === undefined
    ? await notFound(asked, "no group of this type and key")
    : withoutBraces(groupJson(found));
}

async function groupTypes({ reader, projectId }: Asked): Promise<Members> {
  const types = await reader.groupTypes(projectId);
  return pageMembers({ results: types, next: undefined }, (type) => JSON.stringify(type));
}

async function usage(
  { reader, projectId }: Asked,
  { from = everyDay.from, to = everyDay.to }: Values<typeof usageParameters>,
): Promise<Members> {
  if (from > to) return badParameter("from", "must not be after to");
  const days = await reader.usage(projectId, { from, to });
  if (days.length >= usageRowsMax)
    return badParameter(
      "from",
      `the answer would have ${usageRowsMax} entries: ask for fewer days`,
    );
  return usageMembers(days);
}

async function spikes(
  { reader, projectId }: Asked,
  { from = 0, after, limit }: Values<typeof spikeParameters>,
): Promise<Members> {
  return pageMembers(await reader.spikes(projectId, from, pageOf({ after, limit })), spikeJson);
}

interface AskedPage {
  readonly after: string | undefined;
  readonly limit: number | undefined;
}

function pageOf({ after, limit = pageLimitDefault }: AskedPage): Page {
  return { after, limit, bytesMax: pageBytesMax };
}

function onlyOfLists(after: string | undefined, instead: string): ReadProblem {
  return badParameter(
    after === undefined ? "limit" : "after",
    `cannot be combined with ${instead}`,
  );
}

function pageMembers<T>({ results, next }: PageOf<T>, json: (result: T) => string): string {
  return `"results":[${results.map(json).join(",")}],"next":${JSON.stringify(next ?? null)}`;
}

function withoutBraces(json: string): string {
  return json.slice(1, -1);
}
