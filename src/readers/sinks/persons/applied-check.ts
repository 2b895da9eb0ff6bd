// Checks if the effects have applied a batch. Comparing sequences is not enough, because a stream
// may have been recreated. Then, the effects or this process may still read the old stream.

import { rewrittenIdBegin } from "../../../platform/nats/rewritten.ts";
import type { SinkRecord } from "../sink-records.ts";
import type { SinkBatch } from "../sink-target.ts";

export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

export interface AppliedTo extends StreamMessage {
  readonly epoch: number;
  readonly created: string;
  readonly messageId: string | undefined;
}

interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** The database of the effects. If it is unavailable, a query rejects with a StoreError. */
export interface PersonSource {
  reached(messages: readonly StreamMessage[]): Promise<readonly AppliedTo[]>;
  personUuids(ids: readonly ProjectIds[]): Promise<readonly (string | null)[]>;
}

export interface NeededMessage {
  readonly stream: string;
  readonly sequence: number;
  readonly created: string;
  readonly messageId: string | undefined;
}

interface NotApplied {
  readonly why: string;
  readonly isOther: boolean;
}

/** For each stream with events of the batch, returns the last message with such an event. */
export function neededOf(
  { positions }: Pick<SinkBatch, "positions">,
  events: readonly SinkRecord[],
): NeededMessage[] {
  const last = new Map<string, number>();
  for (const { stream, sequence } of events) last.set(stream, sequence);
  return positions.flatMap((position) => {
    const sequence = last.get(position.stream);
    if (sequence === undefined) return [];
    const { stream, created, trail } = position;
    const messageId = trail.findLast((entry) => entry.sequence === sequence)?.messageId;
    return [{ stream, sequence, created, messageId }];
  });
}

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

/** Returns false if an erasure stored the message, which its id shows. */
function isOriginal(messageId: string | undefined): boolean {
  return messageId !== undefined && messageId !== "" && !messageId.startsWith(rewrittenIdBegin);
}

function missingOf(
  { stream, sequence, created, messageId }: NeededMessage,
  found: AppliedTo | undefined,
): NotApplied | undefined {
  if (found === undefined)
    return { why: `the effects have applied nothing of ${stream} yet`, isOther: false };
  if (found.created !== created) {
    // The effects read the new stream, so they will not apply more of the old stream.
    const isBehind = found.epoch > 1 && Date.parse(found.created) > Date.parse(created);
    if (isBehind) return undefined;
    const why = `the effects have applied the stream ${stream} that was created at ${found.created}, but the stream was created again at ${created}`;
    return { why, isOther: true };
  }
  if (found.sequence < sequence) {
    const why = `the effects are at message ${found.sequence} of ${stream}, and the batch needs ${sequence}`;
    return { why, isOther: false };
  }
  if (!isOriginal(messageId) || !isOriginal(found.messageId)) return undefined;
  if (messageId === found.messageId) return undefined;
  return {
    why: `message ${sequence} of ${stream} is not the message that the effects have applied`,
    isOther: true,
  };
}
