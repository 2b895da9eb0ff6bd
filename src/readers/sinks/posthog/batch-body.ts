// Builds the body of a request to `/batch/`. It does not contain `sent_at`, because the upstream
// would correct the times a second time.

import type { SinkRecord } from "../sink-records.ts";

interface Envelope {
  readonly key: string;
  readonly historical: boolean;
}

interface Bounds {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

const beyondRecordBytes = 80;
/** Address for events without an address. Otherwise, PostHog would use the sink's address. */
const noAddress = "0.0.0.0";

export function batchBody(events: readonly SinkRecord[], { key, historical }: Envelope): Buffer {
  const parts: (string | Uint8Array)[] = [`{"api_key":${JSON.stringify(key)},`];
  if (historical) parts.push('"historical_migration":true,');
  parts.push('"batch":[');
  for (const [index, event] of events.entries()) addItem(parts, event, index);
  parts.push("]}");
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

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

/** Adds members at the end, so that `$unset` and `$ip` override the client's own members. */
function addProperties(parts: (string | Uint8Array)[], event: SinkRecord): void {
  const { properties, origin, unset } = event;
  const text = Buffer.from(properties.buffer, properties.byteOffset, properties.length);
  const added: (string | Uint8Array)[] = [];
  if (!mayHave(text, "ip") || !ownValue(text, "$ip")) {
    const address = origin.ip || noAddress;
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

/** Returns false if no member has a name that ends with `end`. It does not parse the properties. */
function mayHave(properties: Buffer, end: string): boolean {
  return properties.includes(`${end}"`);
}

function ownValue(properties: Buffer, name: string): boolean {
  const value = JSON.parse(properties.toString("utf8")) as Record<string, unknown>;
  return Object.hasOwn(value, name) && Boolean(value[name]);
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
