import type { Lane } from "../../platform/base/lane.ts";
import { schemaHeader, schemaKnown } from "../../platform/nats/names.ts";

export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /** Id of the project; undefined if the frame may have lines of several projects. */
  readonly projectId: string | undefined;
  readonly messageId: string;
  readonly storedAtMs: number;
  readonly data: Uint8Array;
}

/** Replaces NUL and lone surrogates, which some databases cannot store. */
export function storedText(header: string): string {
  return header.replaceAll("\0", "\ufffd").toWellFormed();
}

interface Headers {
  get(name: string): string;
}

/**
 * Returns why this version cannot read a message; undefined if it can. The reason is the end of a
 * sentence that begins with "it has".
 */
export function unknownSchema(headers: Headers | undefined): string | undefined {
  const found = headers?.get(schemaHeader) ?? "";
  if (found === "" || found === schemaKnown) return undefined;
  return `the schema "${storedText(found.slice(0, 40))}", but this version reads only ${schemaKnown}: use a newer Penstock`;
}

// If a message has no id, its timestamp identifies it. So both formats must give the same
// millisecond.

const nanosDigits = 6;

export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
