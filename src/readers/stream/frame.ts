import type { Lane } from "../../platform/base/lane.ts";
import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";

export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /** Id of the project; undefined if the frame may have lines of several ones. */
  readonly projectId: string | undefined;
  readonly messageId: string;
  readonly storedAtMs: number;
  /** Lines of the frame, as NDJSON. */
  readonly data: Uint8Array;
}

/** Returns a header that every database can store, without NUL and lone surrogates. */
export function storedText(header: string): string {
  return header.replaceAll("\0", "\ufffd").toWellFormed();
}

interface Headers {
  get(name: string): string;
}

/** Returns the end of a sentence after "it has", if this version cannot read the message. */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", but this version reads only ${schemaKnown}: use a newer Penstock`;
}

// The time of a message identifies it if it has no id, so both formats must give the same
// millisecond. A double cannot hold nanoseconds, and rounding could give the next millisecond.

const nanosDigits = 6;

/** Returns milliseconds. `nanos` are digits, as in the subject that acknowledges a message. */
export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

/** Returns milliseconds. `time` is RFC 3339 with up to nine fractional digits. */
export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
