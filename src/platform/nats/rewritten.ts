// The traces of an erasure in the streams: replacement frames without a person's events, and the
// bucket that records which message replaced which. The names are stored, so they must not change.

import type { MsgHdrs } from "@nats-io/nats-core";
import { bucketStream, bucketSubjects } from "./names.ts";

/**
 * A stream with its creation time: sequences have no meaning in another stream of the same name.
 */
export interface MadeStream {
  readonly stream: string;
  /** The creation time as the server reports it. */
  readonly created: string;
}

/** The message that a frame replaces. */
interface Original extends MadeStream {
  readonly sequence: number;
}

/** The header of a replacement frame: the message that it replaces. */
export const rewritesHeader = "Penstock-Rewrites";
/** The prefix of the message id of such a frame. */
export const rewrittenIdBegin = "rewrite/";
/** The header with the time when the original was stored, in milliseconds since the epoch. */
export const firstStoredHeader = "Penstock-First-Stored";
/** The header with the durable consumers that had acknowledged the original: `readByText`. */
export const readByHeader = "Penstock-Read-By";

export function originalText({ stream, created, sequence }: Original): string {
  return `${stream} ${created} ${sequence}`;
}

/** Undefined: the message is not a replacement. */
export function originalOf(headers: Pick<MsgHdrs, "get"> | undefined): Original | undefined {
  const found = /^(\S+) (\S+) (\d{1,15})$/.exec(headers?.get(rewritesHeader) ?? "");
  if (found === null) return undefined;
  return { stream: found[1]!, created: found[2]!, sequence: Number(found[3]) };
}

/**
 * The sequence of the message that this one replaces; undefined: none of this very stream, so that
 * it is treated like any other message. A message that a hub has copied from a leaf node names the
 * leaf's stream.
 */
export function rewrittenSequence(
  headers: Pick<MsgHdrs, "get"> | undefined,
  { stream, created }: MadeStream,
): number | undefined {
  const original = originalOf(headers);
  const isHere = original?.stream === stream && original.created === created;
  return isHere ? original.sequence : undefined;
}

/** A durable consumer. One that was created again under the same name is a different one. */
export interface Durable {
  readonly durable: string;
  /** The creation time as the server reports it. */
  readonly created: string;
}

/** Maximum number of consumers in the header; others receive the events again. */
const namedMax = 30;

/** `before`: the header of the replaced message, if that is a replacement itself. */
export function readByText(durables: readonly Durable[], before = ""): string {
  const named = [before, ...durables.map(durableText)].join(" ").split(" ");
  return [...new Set(named)]
    .filter((one) => one !== "")
    .slice(0, namedMax)
    .join(" ");
}

/** Whether that consumer has acknowledged the original of this message. */
export function hasReadOriginal(
  headers: Pick<MsgHdrs, "get"> | undefined,
  durable: Durable,
): boolean {
  return (headers?.get(readByHeader) ?? "").split(" ").includes(durableText(durable));
}

function durableText({ durable, created }: Durable): string {
  return `${created}/${durable}`;
}

/** The bucket of erasures of a prefix, from the name of one of its streams. */
export function erasuresBucketOf(stream: string): string {
  return `${stream.replace(/_(?:LIVE|HISTORICAL)_\d+$/, "").toLowerCase()}_erasures`;
}

export function erasuresStreamOf(stream: string): string {
  return bucketStream(erasuresBucketOf(stream));
}

/** The subjects of the entries that record the replacements in the stream. */
export function erasedSubjects(stream: string): string {
  return `${bucketSubjects(erasuresBucketOf(stream))}messages.${stream}.`;
}

/** An entry: alternating sequences of a message and of its replacement; 0: none. */
export interface ErasedEntry {
  readonly created: string;
  readonly messages: readonly number[];
}
