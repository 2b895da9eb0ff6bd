// The formats in which each line is already an event: the gateway's own record, and the events of
// PostHog's capture, API and exports.

import { Ascii, isJsonSpace } from "../../../platform/base/ascii.ts";
import { isObject } from "../json-text.ts";
import { timeOf } from "../times.ts";
import {
  type Conversion,
  type Converted,
  decoded,
  type Format,
  idOf,
  objectIn,
  objectOf,
  present,
} from "./format.ts";

/** Penstock's own record. The members `ip`, `received_at` and `sent_at` are set by the import. */
export const penstock: Format = {
  name: "penstock",
  title: "Penstock's record",
  recognises: (line) =>
    typeof line["project_id"] === "string" &&
    typeof line["received_at"] === "string" &&
    typeof line["event"] === "string",
  needsConversion: () => false,
  convert: (line, conversion) => eventOf(line, conversion),
};

/**
 * A row of the events model (https://posthog.com/docs/cdp/batch-exports/s3#events-model). If it was
 * converted from Parquet, `properties` is text.
 */
export const posthogBatchExport: Format = {
  name: "posthog-batch-export",
  title: "PostHog's batch export",
  recognises: (line) =>
    typeof line["event"] === "string" &&
    "distinct_id" in line &&
    ["_inserted_at", "created_at", "person_properties", "elements_chain", "team_id"].some(
      (name) => name in line,
    ) &&
    !("person" in line) &&
    !("elements" in line),
  needsConversion: hasElements,
  convert: (line, conversion) => withElements(eventOf(line, conversion), line),
};

/**
 * An event of PostHog's capture (https://posthog.com/docs/api/capture) or events API
 * (https://posthog.com/docs/api/events). In the events API, the uuid is called `id`.
 */
export const posthog: Format = {
  name: "posthog",
  title: "PostHog's events",
  recognises: (line) =>
    typeof line["event"] === "string" &&
    (["distinct_id", "$distinct_id"].some((name) => name in line) ||
      ["uuid", "timestamp"].some((name) => name in line)) &&
    !("time" in objectOf(line["properties"]) && !("distinct_id" in line)),
  needsConversion: hasElements,
  mayHaveOtherId: (line) => line.includes(idName),
  convert: (line, conversion) =>
    withElements({ ...eventOf(line, conversion), uuid: line["uuid"] ?? line["id"] }, line),
};

const idName = Buffer.from('"id"');
const chainName = Buffer.from('"elements_chain"');
const elementsName = Buffer.from('"elements"');

function hasElements(line: Buffer): boolean {
  return (
    mayHave(line, chainName, (at) => line[at] === Ascii.Quote && line[at + 1] !== Ascii.Quote) ||
    mayHave(
      line,
      elementsName,
      (at) =>
        line[at] === Ascii.Quote ||
        (line[at] === Ascii.OpenBracket && line[at + 1] !== Ascii.CloseBracket),
    )
  );
}

/**
 * Returns true if the line may contain a member with this name whose value satisfies `isSuch`. The
 * member may be at any depth. `at` is the offset of the value.
 */
function mayHave(line: Buffer, name: Buffer, isSuch: (at: number) => boolean): boolean {
  for (let found = line.indexOf(name); found >= 0; ) {
    let at = found + name.length;
    while (isJsonSpace(line[at]) || line[at] === Ascii.Colon) at++;
    if (isSuch(at)) return true;
    found = line.indexOf(name, at);
  }
  return false;
}

type ConvertedEvent = Extract<Converted, { readonly event: unknown }>;

function eventOf(line: Readonly<Record<string, unknown>>, conversion: Conversion): ConvertedEvent {
  const { event, timestamp, offset, $unset, uuid } = line;
  const distinctId = idOf(line["distinct_id"]) ?? line["$distinct_id"];
  const sent = {
    event,
    distinct_id: distinctId,
    timestamp: timeOf([timestamp]),
    offset,
    properties: propertiesOf(line["properties"], conversion),
    $set: fieldOf("$set", line["$set"], conversion),
    $set_once: fieldOf("$set_once", line["$set_once"], conversion),
    $unset,
  };
  return { event: sent as ConvertedEvent["event"], uuid };
}

function fieldOf(name: string, value: unknown, conversion: Conversion): unknown {
  return typeof value === "string" ? objectIn(name, value, conversion) : value;
}

const objectNames = ["$set", "$set_once", "$group_set", "$groups"] as const;

function propertiesOf(value: unknown, conversion: Conversion): unknown {
  const properties = fieldOf("properties", value, conversion);
  if (!isObject(properties)) return properties;
  const texts = objectNames.filter((name) => typeof properties[name] === "string");
  if (texts.length === 0) return properties;
  const read = texts.map((name) => [
    name,
    fieldOf(`properties.${name}`, properties[name], conversion),
  ]);
  return { ...properties, ...(Object.fromEntries(read) as object) };
}

/**
 * PostHog's clients send the clicked elements in a property. It is `$elements_chain` since
 * posthog-js 1.91, and `$elements` in older versions.
 */
function withElements(
  converted: ConvertedEvent,
  line: Readonly<Record<string, unknown>>,
): ConvertedEvent {
  const { event } = converted;
  const chain = line["elements_chain"];
  const elements = decoded(line["elements"]);
  if (!isObject(event.properties)) return converted;
  const own = present({
    $elements_chain: typeof chain === "string" && chain !== "" ? chain : undefined,
    $elements:
      (chain === undefined || chain === "") && Array.isArray(elements) && elements.length > 0
        ? elements
        : undefined,
  });
  return { ...converted, event: { ...event, properties: { ...own, ...event.properties } } };
}
