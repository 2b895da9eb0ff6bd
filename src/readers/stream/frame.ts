import type { Lane } from "../../platform/base/lane.ts";
import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";

export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /** Id of the project. It is undefined if the frame may contain lines of several projects. */
  readonly projectId: string | undefined;
  readonly messageId: string;
  readonly storedAtMs: number;
  readonly data: Uint8Array;
}

/** Replaces NUL and lone surrogates, because some databases cannot store them. */
export function storedText(header: string): string {
  return header.replaceAll("\0", "\ufffd").toWellFormed();
}

interface Headers {
  get(name: string): string;
}

/**
 * Returns the reason if this version cannot read a message, else undefined. The caller puts the
 * words "it has" before the text.
 */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", but this version reads only ${schemaKnown}: use a newer Penstock`;
}

// The two time formats of the server must give the same millisecond, because the timestamp
// identifies a message without an id.

const nanosDigits = 6;

export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
