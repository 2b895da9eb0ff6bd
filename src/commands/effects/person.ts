import { Buffer } from "node:buffer";
import { isUuid } from "../../platform/base/forms.ts";
import { groupJson, linkJson, personJson } from "../../readers/effects/http/shapes.ts";
import type { OpenReader } from "../../readers/effects/store/open.ts";
import type { Link, Person } from "../../readers/effects/store/port.ts";
import { storedIdText } from "../../records/distinct-id.ts";
import { listMembers } from "../../records/json-members.ts";
import { CommandError, type ConfiguredCommand, say } from "../context.ts";
import { table } from "../terminal.ts";
import { readProject, requireKnown, shownTime } from "./database.ts";

interface PersonQuestion {
  readonly project: string;
  readonly id: string;
  readonly json: boolean;
}

interface GroupQuestion {
  readonly project: string;
  readonly type: string;
  readonly key: string;
  readonly json: boolean;
}

const mergedFromShown = 5;

export async function person(
  command: ConfiguredCommand,
  { project, id, json }: PersonQuestion,
): Promise<void> {
  await readProject(command, { project, json }, async (reader, asOf) => {
    const found = await findPerson(command, reader, { project, id });
    if (json) say(command, `${personJson(found).slice(0, -1)},${asOf}}`);
    else for (const line of personLines(found)) say(command, line);
  });
}

export async function links(
  command: ConfiguredCommand,
  { project, id, json }: PersonQuestion,
): Promise<void> {
  await readProject(command, { project, json }, async (reader, asOf) => {
    const { uuid } = await findPerson(command, reader, { project, id });
    const found = (await reader.links(project, uuid)) ?? [];
    if (json) say(command, `{"links":[${found.map(linkJson).join(",")}],${asOf}}`);
    else if (found.length === 0) say(command, "no links: this person has a single id");
    else for (const line of linkTable(found)) say(command, line);
  });
}

export async function group(
  command: ConfiguredCommand,
  { project, type, key, json }: GroupQuestion,
): Promise<void> {
  await readProject(command, { project, json }, async (reader, asOf) => {
    const found = await reader.group({
      projectId: project,
      type: storedIdText(type),
      key: storedIdText(key),
    });
    if (found === undefined) {
      await requireKnown(command, reader, project);
      const types = await reader.groupTypes(project);
      throw new CommandError(
        types.includes(storedIdText(type))
          ? `the project ${project} has no ${type} with the key "${key}"`
          : `the project ${project} has no groups of the type "${type}"; ${types.length === 0 ? "it has no groups" : `its types are ${types.join(", ")}`}`,
      );
    }
    if (json) say(command, `${groupJson(found).slice(0, -1)},${asOf}}`);
    else {
      const rows = [
        ["created", shownTime(found.createdAtMs)],
        ["updated", shownTime(found.updatedAtMs)],
      ] as const;
      const lines = [...card(`${type} ${key}`, rows), ...propertyLines(found.propertiesJson)];
      for (const line of lines) say(command, line);
    }
  });
}

async function findPerson(
  command: ConfiguredCommand,
  reader: OpenReader,
  { project, id }: Pick<PersonQuestion, "project" | "id">,
): Promise<Person> {
  const byId = await reader.personByDistinctId(project, storedIdText(id));
  if (byId !== undefined) return byId;
  const byUuid = isUuid(id) ? await reader.personByUuid(project, id.toLowerCase()) : undefined;
  if (byUuid !== undefined) return byUuid;
  await requireKnown(command, reader, project);
  throw new CommandError(`the project ${project} has no person "${id}", by distinct id or uuid`);
}

function personLines(found: Person): string[] {
  const { distinctIds, distinctIdsTotal, mergedFrom } = found;
  const more = distinctIdsTotal - distinctIds.length;
  // The first id has the uuid of the person. `mergedFrom` may not contain all other ids.
  const others = distinctIdsTotal - 1 - mergedFromShown;
  const rows: [string, string][] = [
    ["main id", found.mainDistinctId],
    [
      distinctIdsTotal === 1 ? "id" : `${distinctIdsTotal} ids`,
      `${distinctIds.join(", ")}${more > 0 ? ` and ${more} more` : ""}`,
    ],
    [
      "known",
      found.known
        ? "yes: an anonymous id was linked to this id"
        : "no: no anonymous id was linked to this id",
    ],
    ["created", shownTime(found.createdAtMs)],
    ["last seen", `${shownTime(found.lastSeenAtMs)}, to the hour`],
  ];
  if (mergedFrom.length > 0) {
    const shown = mergedFrom.slice(0, mergedFromShown).join(", ");
    rows.push(["merged from", `${shown}${others > 0 ? ` and ${others} more` : ""}`]);
  }
  return [...card(`person ${found.uuid}`, rows), ...propertyLines(found.propertiesJson)];
}

function linkTable(found: readonly Link[]): string[] {
  return table([
    ["AT", "KIND", "OUTCOME", "ONE", "OTHER", "EVENT"],
    ...found.map(({ atMs, kind, outcome, a, b, eventUuid }) => [
      shownTime(atMs),
      kind,
      outcome,
      a,
      b,
      eventUuid,
    ]),
  ]);
}

function card(title: string, rows: readonly (readonly [string, string])[]): string[] {
  return [title, ...table(rows.map((row) => ["", ...row]))];
}

function propertyLines(json: string): string[] {
  const bytes = Buffer.from(json);
  const lines = listMembers(bytes, 0, bytes.length).map(({ text }) => `    ${text}`);
  return lines.length === 0 ? ["  no properties"] : ["  properties", ...lines];
}
