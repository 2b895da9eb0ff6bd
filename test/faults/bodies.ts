// The bodies of the load's requests. An event carries its number several times, and a text that
// reveals a mixed-up or truncated line. The same number gives the same bytes.

import { type KindOfEvent, keyOf } from "./event-kinds.ts";

const sentence =
  "the quick brown fox jumps over the lazy dog and opens the pricing page of the dashboard once more; ";
const padding = sentence.repeat(9);
const eventName = "fault test";
const timestamp = "2026-01-02T03:04:05.678Z";

interface EventShape {
  readonly paddingBytes: number;
  readonly bad?: boolean;
}

/**
 * Returns whether a stored line contains the event that was sent with this number, and no data of
 * another client.
 */
export function isAsSent(record: Readonly<Record<string, unknown>>, number: number): boolean {
  const properties = record["properties"] as Readonly<Record<string, unknown>> | null | undefined;
  const text = properties?.["padding"];
  return (
    record["event"] === eventName &&
    record["distinct_id"] === distinctIdOf(number) &&
    record["timestamp"] === timestamp &&
    properties?.["number"] === number &&
    typeof text === "string" &&
    text === paddingOf(number, Number.parseInt(text, 10)) &&
    Object.keys(properties).length === 2 &&
    !("$set" in record || "$set_once" in record)
  );
}

function distinctIdOf(number: number): string {
  return `person-${number}`;
}

function paddingOf(number: number, bytes: number): string {
  const from = number % sentence.length;
  return `${bytes} ${padding.slice(from, from + bytes)}`;
}

export function eventText(
  kind: KindOfEvent,
  number: number,
  { paddingBytes, bad }: EventShape,
): string {
  const uuid = kind.uuidPrefix + number.toString(16).padStart(12, "0");
  const properties = `{"number":${number},"padding":"${paddingOf(number, paddingBytes)}"}`;
  return `{"event":"${eventName}","distinct_id":"${distinctIdOf(number)}","uuid":"${uuid}","timestamp":"${timestamp}","properties":${bad ? `[${properties}]` : properties}}`;
}

export function singleBody(
  kind: KindOfEvent,
  number: number,
  shape: EventShape & { readonly key?: string },
): Buffer {
  const key = shape.key ?? keyOf(kind.projectOf(number));
  return Buffer.from(`{"api_key":"${key}",${eventText(kind, number, shape).slice(1)}`);
}

export function batchBody(project: string, items: readonly string[], historical = false): Buffer {
  const lane = historical ? `"historical_migration":true,` : "";
  return Buffer.from(`{"api_key":"${keyOf(project)}",${lane}"batch":[${items.join(",")}]}`);
}

export function eventTexts(
  kind: KindOfEvent,
  first: number,
  count: number,
  shape: EventShape,
): string[] {
  return Array.from({ length: count }, (_, item) => eventText(kind, first + item, shape));
}
