// The names of the headers and entries that an erasure writes to the streams. They must never
// change, because stored data contains them.

import type { MsgHdrs } from "@nats-io/nats-core";
import { bucketStream, bucketSubjects } from "./names.ts";

export interface MadeStream {
  readonly stream: string;
  readonly created: string;
}

interface Original extends MadeStream {
  readonly sequence: number;
}

export const rewritesHeader = "Penstock-Rewrites";
export const rewrittenIdBegin = "rewrite/";
/** The time at which the replaced message was stored, in milliseconds since the epoch. */
export const firstStoredHeader = "Penstock-First-Stored";
/** The header lists the durable consumers that had acknowledged the replaced message. */
export const readByHeader = "Penstock-Read-By";

export function originalText({ stream, created, sequence }: Original): string {
  return `${stream} ${created} ${sequence}`;
}

export function originalOf(headers: Pick<MsgHdrs, "get"> | undefined): Original | undefined {
  const found = /^(\S+) (\S+) (\d{1,15})$/.exec(headers?.get(rewritesHeader) ?? "");
  if (found === null) return undefined;
  return { stream: found[1]!, created: found[2]!, sequence: Number(found[3]) };
}

/**
 * Returns the sequence of the message that this message replaces, or undefined if it replaces none.
 * If a frame names a different stream, a hub has copied it from a leaf node. In that case, it
 * replaces no message of this stream.
 */
export function rewrittenSequence(
  headers: Pick<MsgHdrs, "get"> | undefined,
  { stream, created }: MadeStream,
): number | undefined {
  const original = originalOf(headers);
  const isHere = original?.stream === stream && original.created === created;
  return isHere ? original.sequence : undefined;
}

export interface Durable {
  readonly durable: string;
  readonly created: string;
}

const namedMax = 30;

export function readByText(durables: readonly Durable[], before = ""): string {
  const named = [before, ...durables.map(durableText)].join(" ").split(" ");
  return [...new Set(named)]
    .filter((one) => one !== "")
    .slice(0, namedMax)
    .join(" ");
}

export function hasReadOriginal(
  headers: Pick<MsgHdrs, "get"> | undefined,
  durable: Durable,
): boolean {
  return (headers?.get(readByHeader) ?? "").split(" ").includes(durableText(durable));
}

function durableText({ durable, created }: Durable): string {
  return `${created}/${durable}`;
}

export function erasuresBucketOf(stream: string): string {
  return `${stream.replace(/_(?:LIVE|HISTORICAL|REJECTED)_\d+$/, "").toLowerCase()}_erasures`;
}

export function erasuresStreamOf(stream: string): string {
  return bucketStream(erasuresBucketOf(stream));
}

export function erasedSubjects(stream: string): string {
  return `${bucketSubjects(erasuresBucketOf(stream))}messages.${stream}.`;
}

/**
 * Pairs of the sequence of an erased message and the sequence of its replacement. The second number
 * is 0 if there is no replacement.
 */
export interface ErasedEntry {
  readonly created: string;
  readonly messages: readonly number[];
}
