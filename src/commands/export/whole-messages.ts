// Yields each message of a stream once, even while an erasure is running. If a message was erased,
// its replacement is yielded instead, even if the replacement is after the end of the range.

import type { NatsConnection } from "@nats-io/nats-core";
import { ErasedMessages } from "../../platform/nats/erased-messages.ts";
import { rewrittenSequence } from "../../platform/nats/rewritten.ts";
import { managerFor } from "../nats.ts";
import { type FoundStream, messagesOf, type ReadOptions, subjectsOf } from "../stream-messages.ts";

export interface WholeMessage {
  readonly subject: string;
  /**
   * The sequence of the message. If the message replaces an erased message, this is the sequence of
   * the erased message.
   */
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly data: Uint8Array;
}

interface WholeOptions extends ReadOptions {
  readonly missed: (messages: number) => void;
}

const messagesAtOnce = 1_000;

/** Yields the messages. A replacement may be after later messages. Throws `messagesOf`'s errors. */
export async function* wholeMessages(
  connection: NatsConnection,
  one: FoundStream,
  options: WholeOptions,
): AsyncGenerator<WholeMessage> {
  const made = { stream: one.name.stream, created: one.state.created };
  const manager = await managerFor(connection);
  const [ahead, anywhere] = [new ErasedMessages(manager, made), new ErasedMessages(manager, made)];
  await anywhere.learn(0);
  let [from, missed] = [1, 0];
  const read = new Set<number>();
  for await (const { seq: sequence, subject, data, headers, timestampNanos } of messagesOf(
    connection,
    one,
    options,
  )) {
    read.add(sequence);
    const original = rewrittenSequence(headers, made);
    if (original === undefined || !(await isReadElsewhere(original, anywhere)))
      yield { subject, sequence, data, storedAtMs: Number(timestampNanos / 1_000_000n) };
    if (read.size < messagesAtOnce) continue;
    missed += yield* replaced(ahead, { ...one, from, to: sequence, read }, options);
    from = sequence + 1;
    read.clear();
  }
  missed += yield* replaced(ahead, { ...one, from, to: one.state.lastSequence, read }, options);
  if (missed > 0) options.missed(missed);
}

/**
 * Returns true if another message is yielded for this original. If an erasure was killed, there may
 * be a copy that it has not recorded. After the original is removed, this copy is the only message
 * with the lines.
 */
async function isReadElsewhere(original: number, erased: ErasedMessages): Promise<boolean> {
  if ((await erased.replacementOf(original)) !== undefined || (await erased.isThere(original)))
    return true;
  await erased.learn(0);
  return (await erased.replacementOf(original)) !== undefined;
}

interface Range extends FoundStream {
  readonly from: number;
  readonly to: number;
  readonly read: ReadonlySet<number>;
}

async function* replaced(
  erased: ErasedMessages,
  { name, state, from, to, read }: Range,
  options: ReadOptions,
): AsyncGenerator<WholeMessage, number> {
  const { stop, storedFromMs = Number.NEGATIVE_INFINITY } = options;
  const subjects = subjectsOf(name, options);
  let missed = 0;
  await erased.learn(from);
  for await (const sequence of erased.between(from, to)) {
    if (stop.aborted) break;
    if (read.has(sequence)) continue;
    const frame = await erased.frameAt(sequence);
    if (frame === undefined) {
      const place = (await erased.replacementOf(sequence)) ?? 0;
      if (place >= state.firstSequence) missed++;
      continue;
    }
    if (frame.storedAtMs < storedFromMs) continue;
    const { subject, data } = frame.message;
    if (subjects.includes(subject)) yield { subject, sequence, data, storedAtMs: frame.storedAtMs };
  }
  return missed;
}
