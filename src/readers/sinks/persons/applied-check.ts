// Whether the effects have applied a batch: whether each of its streams is as far with them. A
// stream may have been made anew, or have lost its tail, and one of both may not have noticed yet:
// then the same number is of another message.

import { rewrittenIdBegin } from "../../../platform/nats/rewritten.ts";
import type { SinkRecord } from "../sink-records.ts";
import type { SinkBatch, SinkPosition } from "../sink-target.ts";
import type { AppliedTo } from "./person-source.ts";

export interface NeededMessage {
  readonly stream: string;
  readonly sequence: number;
  readonly created: string;
  /** Undefined: it is not known any more. */
  readonly messageId: string | undefined;
}

/** What is in the way. */
interface NotApplied {
  /** For people. */
  readonly why: string;
  /** The effects, or this process, look at a stream that is no more: not a matter of waiting. */
  readonly isOther: boolean;
}

/** The last message of each stream that has one of these events. */
export function neededOf(
  { positions }: Pick<SinkBatch, "positions">,
  events: readonly SinkRecord[],
): NeededMessage[] {
  const last = new Map<string, number>();
  // They are in the order of each stream.
  for (const { stream, sequence } of events) last.set(stream, sequence);
  return positions.flatMap((position) => {
    const sequence = last.get(position.stream);
    return sequence === undefined ? [] : [neededAt(position, sequence)];
  });
}

function neededAt({ stream, created, trail }: SinkPosition, sequence: number): NeededMessage {
  const messageId = trail.findLast((entry) => entry.sequence === sequence)?.messageId;
  return { stream, sequence, created, messageId };
}

/** Undefined: all of it is applied. */
export function notApplied(
  needed: readonly NeededMessage[],
  applied: readonly AppliedTo[],
): NotApplied | undefined {
  const byStream = new Map(applied.map((one) => [one.stream, one]));
  for (const message of needed) {
    const found = missingOf(message, byStream.get(message.stream));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A frame that an erasure has put in the place of another has an id of its own. */
function isOriginal(messageId: string | undefined): boolean {
  return messageId !== undefined && messageId !== "" && !messageId.startsWith(rewrittenIdBegin);
}

function missingOf(
  { stream, sequence, created, messageId }: NeededMessage,
  found: AppliedTo | undefined,
): NotApplied | undefined {
  if (found === undefined)
    return { why: `they have applied nothing of ${stream} yet`, isOther: false };
  if (found.created !== created) {
    // They saw it made anew, and will apply no more of the one before.
    const isBehind = found.epoch > 1 && Date.parse(found.created) > Date.parse(created);
    if (isBehind) return undefined;
    const why = `they have applied the stream ${stream} that was made at ${found.created}, and this one was made at ${created}`;
    return { why, isOther: true };
  }
  if (found.sequence < sequence) {
    const why = `they are at message ${found.sequence} of ${stream}, and ${sequence} is to be written`;
    return { why, isOther: false };
  }
  if (!isOriginal(messageId) || !isOriginal(found.messageId)) return undefined;
  if (messageId === found.messageId) return undefined;
  return { why: `their message ${sequence} of ${stream} is another one`, isOther: true };
}
