// A frame as it is in its stream: what a reader gets, when it was stored, and which form of it this
// version can read.

import type { Lane } from "../../platform/base/lane.ts";
import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";

/** A message of a stream, as it was stored. */
export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /** The project that its subject names; undefined where it may hold several projects' lines. */
  readonly projectId: string | undefined;
  readonly messageId: string;
  /** When the stream stored it. */
  readonly storedAtMs: number;
  /** NDJSON. */
  readonly data: Uint8Array;
}

/** What another publisher wrote into a header, as a text that every database takes. */
export function storedText(header: string): string {
  return header.replaceAll("\0", "\ufffd").toWellFormed();
}

interface Headers {
  get(name: string): string;
}

/**
 * The schema of a message that this version cannot read, and what to do, to stand behind "it has".
 * Undefined: it can. A message without the header is none of the gateway's: its lines are looked
 * at, and rejected.
 */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", this version knows ${schemaKnown} alone: use a newer Penstock for it`;
}

// The server states when a message was stored in two forms. Both are read to the same millisecond: by
// it a message without an id is told from another. A double cannot hold nanoseconds since 1970, and
// rounded they can be the millisecond after.

const nanosDigits = 6;

/** `nanos`: digits, as in the subject by which a message is acknowledged. */
export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

/** `time`: as RFC 3339 has it, with up to nine digits behind the second. */
export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
