// The bodies of the load's requests. Each event carries its number in its UUID, its distinct id and its properties, so that a
// line which was mixed up with another on its way is found. The same number makes the same bytes.

import { type KindOfEvent, keyOf } from "./event-kinds.ts";

const padding =
  "the quick brown fox jumps over the lazy dog and opens the pricing page of the dashboard once more; ".repeat(8);
/** Fixed: nothing depends on the clock but what the gateway itself says of it. */
const timestamp = "2026-01-02T03:04:05.678Z";

export interface EventShape {
  /** Of text beside the rest, up to 790. */
  readonly paddingBytes: number;
  /** An event that is refused: it lacks what its name asks for. */
  readonly bad?: boolean;
}

export function distinctIdOf(number: number): string {
  return `person-${number}`;
}

export function eventText(kind: KindOfEvent, number: number, { paddingBytes, bad }: EventShape): string {
  const uuid = kind.uuidPrefix + number.toString(16).padStart(12, "0");
  const name = bad ? "$create_alias" : "fault test";
  return `{"event":"${name}","distinct_id":"${distinctIdOf(number)}","uuid":"${uuid}","timestamp":"${timestamp}","properties":{"number":${number},"padding":"${padding.slice(0, paddingBytes)}"}}`;
}

/** One event, for /capture/. */
export function singleBody(kind: KindOfEvent, number: number, shape: EventShape & { readonly key?: string }): Buffer {
  const key = shape.key ?? keyOf(kind.projectOf(number));
  return Buffer.from(`{"api_key":"${key}",${eventText(kind, number, shape).slice(1)}`);
}

/** Events that are put in a batch as they are. */
export function batchBody(project: string, items: readonly string[], historical = false): Buffer {
  const lane = historical ? `"historical_migration":true,` : "";
  return Buffer.from(`{"api_key":"${keyOf(project)}",${lane}"batch":[${items.join(",")}]}`);
}

export function eventTexts(kind: KindOfEvent, first: number, count: number, shape: EventShape): string[] {
  return Array.from({ length: count }, (_, item) => eventText(kind, first + item, shape));
}
