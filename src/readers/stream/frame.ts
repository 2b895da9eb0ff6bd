// A frame as it is in its stream: its data, when it was stored, and which schema this version can
// read.

import type { Lane } from "../../platform/base/lane.ts";
import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";

/** A stored message of a stream. */
export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /**
   * The project named by the subject; undefined if the frame may have lines of several projects.
   */
  readonly projectId: string | undefined;
  readonly messageId: string;
  /** When the stream stored it. */
  readonly storedAtMs: number;
  /** NDJSON. */
  readonly data: Uint8Array;
}

/** Makes the header of an unknown publisher a text that every database accepts. */
export function storedText(header: string): string {
  return header.replaceAll("\0", "\ufffd").toWellFormed();
}

interface Headers {
  get(name: string): string;
}

/**
 * Returns the schema of a message that this version cannot read, and what to do, for a sentence
 * with "it has". Undefined: this version can read it. A message without the header is not from the
 * gateway: its lines are checked and rejected.
 */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", but this version reads only ${schemaKnown}: use a newer Penstock`;
}

// The server states in two formats when a message was stored. Both are parsed to the same
// millisecond, because this time identifies a message without an id. A double cannot hold
// nanoseconds since 1970, and rounding could give the next millisecond.

const nanosDigits = 6;

/** `nanos`: digits, as in the subject that acknowledges a message. */
export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

/** `time`: RFC 3339 with up to nine fractional digits. */
export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
