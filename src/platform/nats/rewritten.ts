// What an erasure leaves in the streams: replacement frames, and a bucket with the replacement of
// each message. The names must not change, because stored data contains them.

import type { MsgHdrs } from "@nats-io/nats-core";
import { bucketStream, bucketSubjects } from "./names.ts";

/** Identifies a stream. A new stream of the same name has a different creation time. */
export interface MadeStream {
  readonly stream: string;
  readonly created: string;
}

interface Original extends MadeStream {
  readonly sequence: number;
}

export const rewritesHeader = "Penstock-Rewrites";
/** The prefix of a replacement frame's message id. */
export const rewrittenIdBegin = "rewrite/";
/** The header with the time when the replaced message was stored, in ms since the epoch. */
export const firstStoredHeader = "Penstock-First-Stored";
/** The header with the durable consumers that had acknowledged the replaced message. */
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
 * Returns the sequence of the replaced message; undefined for any other message. Also returns
 * undefined if the frame names another stream, because a hub copies frames from leaf nodes.
 */
export function rewrittenSequence(
  headers: Pick<MsgHdrs, "get"> | undefined,
  { stream, created }: MadeStream,
): number | undefined {
  const original = originalOf(headers);
  const isHere = original?.stream === stream && original.created === created;
  return isHere ? original.sequence : undefined;
}

/** Identifies a durable consumer. A new consumer of the same name has a different creation time. */
export interface Durable {
  readonly durable: string;
  readonly created: string;
}

/** Maximum number of named consumers. Other consumers receive the events again. */
const namedMax = 30;

/** Returns the header's text. `before` is the header of a replacement that is replaced again. */
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

/** Returns the bucket of erasures. `stream` is any stream with the prefix of the bucket. */
export function erasuresBucketOf(stream: string): string {
  return `${stream.replace(/_(?:LIVE|HISTORICAL|REJECTED)_\d+$/, "").toLowerCase()}_erasures`;
}

export function erasuresStreamOf(stream: string): string {
  return bucketStream(erasuresBucketOf(stream));
}

export function erasedSubjects(stream: string): string {
  return `${bucketSubjects(erasuresBucketOf(stream))}messages.${stream}.`;
}

/** Pairs of an erased sequence and the sequence of its replacement, or 0. */
export interface ErasedEntry {
  readonly created: string;
  readonly messages: readonly number[];
}
