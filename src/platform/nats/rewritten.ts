// What an erasure leaves in the streams: frames that were written anew without a person's events,
// and the bucket that says which message became which. The names are stored, so they must not
// change.

import type { MsgHdrs } from "@nats-io/nats-core";
import { bucketStream, bucketSubjects } from "./names.ts";

/** A stream that was made at that time: its numbers mean nothing in another one of its name. */
export interface MadeStream {
  readonly stream: string;
  /** When it was made, as the server says it. */
  readonly created: string;
}

/** The message in whose place a frame was written. */
interface Original extends MadeStream {
  readonly sequence: number;
}

/** The header of a frame that was written anew: the message whose place it takes. */
export const rewritesHeader = "Penstock-Rewrites";
/** What the message id of such a frame begins with. */
export const rewrittenIdBegin = "rewrite/";
/** The header that says when that message was stored, in milliseconds since the epoch. */
export const firstStoredHeader = "Penstock-First-Stored";
/** The header with the durable consumers that had acknowledged that message: `readByText`. */
export const readByHeader = "Penstock-Read-By";

export function originalText({ stream, created, sequence }: Original): string {
  return `${stream} ${created} ${sequence}`;
}

/** Undefined: the message is none that was written anew. */
export function originalOf(headers: Pick<MsgHdrs, "get"> | undefined): Original | undefined {
  const found = /^(\S+) (\S+) (\d{1,15})$/.exec(headers?.get(rewritesHeader) ?? "");
  if (found === null) return undefined;
  return { stream: found[1]!, created: found[2]!, sequence: Number(found[3]) };
}

/**
 * The number of the message in whose place this one was written; undefined: in none of this very
 * stream, so that it is a message like any other. One that a hub has gathered from a leaf node
 * names the leaf's stream.
 */
export function rewrittenSequence(
  headers: Pick<MsgHdrs, "get"> | undefined,
  { stream, created }: MadeStream,
): number | undefined {
  const original = originalOf(headers);
  const isHere = original?.stream === stream && original.created === created;
  return isHere ? original.sequence : undefined;
}

/** A durable consumer; one that was made anew under the name of another is another one. */
export interface Durable {
  readonly durable: string;
  /** When it was made, as the server says it. */
  readonly created: string;
}

/** Who is not named hears of the events once more; the header has room for so many. */
const namedMax = 30;

/** `before`: the text that the message has, where it stands in the place of another one. */
export function readByText(durables: readonly Durable[], before = ""): string {
  const named = [before, ...durables.map(durableText)].join(" ").split(" ");
  return [...new Set(named)]
    .filter((one) => one !== "")
    .slice(0, namedMax)
    .join(" ");
}

/** Whether that consumer has acknowledged the message in whose place this one is. */
export function hasReadOriginal(
  headers: Pick<MsgHdrs, "get"> | undefined,
  durable: Durable,
): boolean {
  return (headers?.get(readByHeader) ?? "").split(" ").includes(durableText(durable));
}

function durableText({ durable, created }: Durable): string {
  return `${created}/${durable}`;
}

/** The bucket beside the streams of a prefix, by the name of one of them. */
export function erasuresBucketOf(stream: string): string {
  return `${stream.replace(/_(?:LIVE|HISTORICAL)_\d+$/, "").toLowerCase()}_erasures`;
}

export function erasuresStreamOf(stream: string): string {
  return bucketStream(erasuresBucketOf(stream));
}

/** The subjects of the entries that say which messages of the stream became which. */
export function erasedSubjects(stream: string): string {
  return `${bucketSubjects(erasuresBucketOf(stream))}messages.${stream}.`;
}

/** Such an entry: numbers of a message and of the one in its place, in turn; 0: nothing is. */
export interface ErasedEntry {
  readonly created: string;
  readonly messages: readonly number[];
}
