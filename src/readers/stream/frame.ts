// The stored form of a frame: its data, its times, and the schema that this version can read.

import type { Lane } from "../../platform/base/lane.ts";
import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";

/** A message as the stream stores it. */
export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /** Project named by the subject; undefined if the frame may have lines of several projects. */
  readonly projectId: string | undefined;
  readonly messageId: string;
  /** Time in ms when the stream stored the message. */
  readonly storedAtMs: number;
  /** Lines of the frame, as NDJSON. */
  readonly data: Uint8Array;
}

/**
 * Returns a header of an unknown publisher as a text that every database accepts: without NUL and
 * lone surrogates.
 */
export function storedText(header: string): string {
  return header.replaceAll("\0", "\ufffd").toWellFormed();
}

interface Headers {
  get(name: string): string;
}

/**
 * Returns the end of a sentence after "it has" if this version cannot read the message: the schema,
 * and what to do. Undefined if this version can read the message. A message without the header is
 * not from the gateway; its lines are checked, and invalid ones are rejected.
 */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", but this version reads only ${schemaKnown}: use a newer Penstock`;
}

// The server reports the time when a message was stored in two formats. Both are parsed to the same
// millisecond, because this time identifies a message without an id. A double cannot hold
// nanoseconds since 1970, and rounding could give the next millisecond.

const nanosDigits = 6;

/** Returns the milliseconds of `nanos`: digits, as in the subject that acknowledges a message. */
export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

/** Returns the milliseconds of `time`: RFC 3339 with up to nine fractional digits. */
export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
