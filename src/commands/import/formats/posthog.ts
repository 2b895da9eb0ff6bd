// Formats whose lines are events already, with small changes: the gateway's own record, the events
// of PostHog's capture, and PostHog's exports. The fields that the gateway reads are the same in
// all of them. It ignores other fields.

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

/**
 * The record that the gateway stores, as printed by `penstock tail` and described in
 * docs/guides/reading.md. The import replaces `ip`, `received_at` and `sent_at` by its own values.
 */
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
 * A row of the events model as JSONLines
 * (https://posthog.com/docs/cdp/batch-exports/s3#events-model). `$set` and `$set_once` are in its
 * `properties`. In Parquet `properties` is text, and stays text if Parquet is converted to JSON.
 * `person_id` and `person_properties` are ignored, because they are derived from all events.
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
 * An event in the form that PostHog's capture accepts (https://posthog.com/docs/api/capture) and
 * that its events API returns (https://posthog.com/docs/api/events). The events API calls the uuid
 * `id`.
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
  mayHaveOtherId: (text, start, end) => text.subarray(start, end).includes(idName),
  convert: (line, conversion) =>
    withElements({ ...eventOf(line, conversion), uuid: line["uuid"] ?? line["id"] }, line),
};

const idName = Buffer.from('"id"');
const chainName = Buffer.from('"elements_chain"');
const elementsName = Buffer.from('"elements"');

/** Returns whether the line may contain clicked elements. */
function hasElements(text: Buffer, start: number, end: number): boolean {
  const line = text.subarray(start, end);
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
 * Returns whether a member of the given name, at any depth, may have a value for which `isSuch`
 * returns true. `at` is the offset of the value.
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

/** Returns all fields that the gateway reads, under the gateway's names. */
function eventOf(line: Readonly<Record<string, unknown>>, conversion: Conversion): ConvertedEvent {
  const { event, timestamp, offset, $unset, uuid } = line;
  const distinctId = idOf(line["distinct_id"]) ?? line["$distinct_id"];
  const sent = {
    ...{ event, distinct_id: distinctId, timestamp: timeOf([timestamp]), offset },
    properties: propertiesOf(line["properties"], conversion),
    $set: fieldOf("$set", line["$set"], conversion),
    $set_once: fieldOf("$set_once", line["$set_once"], conversion),
    $unset,
  };
  // A field of a wrong type is sent unchanged: the gateway reports it by its own rules.
  return { event: sent as ConvertedEvent["event"], uuid };
}

/** Returns the object in a text. Returns any other value unchanged. */
function fieldOf(name: string, value: unknown, conversion: Conversion): unknown {
  return typeof value === "string" ? objectIn(name, value, conversion) : value;
}

/** Properties that the gateway reads as objects. Here they may be text. */
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
 * Moves the clicked elements into the properties, the place in which PostHog's own clients send
 * them (`$elements_chain` since posthog-js 1.91, `$elements` before).
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
