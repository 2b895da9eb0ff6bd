// Puts the body of a request to `/batch/` together from stored events, in their order. An event
// leaves with the uuid and the time that it was stored with, and without `sent_at`, so that nobody
// corrects its time a second time.

import type { SinkRecord } from "../sink-records.ts";

interface Envelope {
  /** The project's key upstream. */
  readonly key: string;
  readonly historical: boolean;
}

interface Bounds {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** What an event has beside its record's text, at most. */
const beyondRecordBytes = 80;
/**
 * In place of an address that was not recorded. PostHog takes that of whoever sends an event that
 * has none, or an empty one.
 */
const noAddress = "0.0.0.0";

export function batchBody(events: readonly SinkRecord[], { key, historical }: Envelope): Buffer {
  const parts: (string | Uint8Array)[] = [`{"api_key":${JSON.stringify(key)},`];
  if (historical) parts.push('"historical_migration":true,');
  parts.push('"batch":[');
  for (const [index, event] of events.entries()) addItem(parts, event, index);
  parts.push("]}");
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

/** How many of the events go into one request. The first does, however large it is. */
export function requestLength(
  events: readonly SinkRecord[],
  { eventsMax, bytesMax }: Bounds,
): number {
  let bytes = 0;
  let count = 0;
  for (const { text } of events) {
    bytes += text.length + beyondRecordBytes;
    if (count > 0 && (bytes > bytesMax || count >= eventsMax)) break;
    count++;
  }
  return count;
}

function addItem(parts: (string | Uint8Array)[], event: SinkRecord, index: number): void {
  const { uuid, distinctId, timestampMs, set, setOnce } = event;
  const comma = index === 0 ? "" : ",";
  const time = isoTime(timestampMs);
  parts.push(
    `${comma}{"uuid":"${uuid}","event":${JSON.stringify(event.event)},"distinct_id":${JSON.stringify(distinctId)},"timestamp":"${time}","properties":`,
  );
  addProperties(parts, event);
  if (set !== undefined) parts.push(',"$set":', set);
  if (setOnce !== undefined) parts.push(',"$set_once":', setOnce);
  parts.push("}");
}

/**
 * PostHog knows `$unset` and the client's address as properties alone. They stand last, where they
 * count over an empty one of the name.
 */
function addProperties(parts: (string | Uint8Array)[], event: SinkRecord): void {
  const { properties, ip, unset } = event;
  const text = Buffer.from(properties.buffer, properties.byteOffset, properties.length);
  const added: (string | Uint8Array)[] = [];
  if (!mayHave(text, "ip") || !ownValue(text, "$ip")) {
    const address = ip === "" ? noAddress : ip;
    added.push(`"$ip":${JSON.stringify(address)}`);
  }
  if (unset !== undefined && (!mayHave(text, "unset") || !ownValue(text, "$unset")))
    added.push(added.length > 0 ? ',"$unset":' : '"$unset":', unset);
  if (added.length === 0) {
    parts.push(properties);
    return;
  }
  const end = text.lastIndexOf("}");
  const isEmpty = text.toString("latin1", 1, end).trim() === "";
  parts.push(text.subarray(0, end), isEmpty ? "" : ",", ...added, "}");
}

/** Whether a name can end so at all: most properties need not be read for it. */
function mayHave(properties: Buffer, end: string): boolean {
  return properties.includes(`${end}"`);
}

/** Whether the properties have a value of that name which is not empty. */
function ownValue(properties: Buffer, name: string): boolean {
  const value = JSON.parse(properties.toString("utf8")) as Record<string, unknown>;
  return Object.hasOwn(value, name) && Boolean(value[name]);
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
