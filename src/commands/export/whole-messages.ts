// One stream's messages as an export takes them: each once, also while an erasure is at work. What
// one has written anew may stand behind the end of what is read, so it is fetched for the message
// that is not there any more; where it lies it is passed over.

import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../platform/nats/api.ts";
import { ErasedMessages } from "../../platform/nats/erased-messages.ts";
import { rewrittenSequence } from "../../platform/nats/rewritten.ts";
import { type FoundStream, messagesOf, type ReadOptions, subjectsOf } from "../stream-messages.ts";

export interface WholeMessage {
  readonly subject: string;
  /** Those of the message in whose place it stands, where it was written anew. */
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly data: Uint8Array;
}

interface WholeOptions extends ReadOptions {
  /** So many messages that stood in the place of others are gone, and not by age. */
  readonly missed: (messages: number) => void;
}

/** After so many it is asked whether what is missing between them was erased. */
const messagesAtOnce = 1_000;
const questionMs = 5_000;

/** What stands in the place of others comes behind some that are later. Throws a CommandError. */
export async function* wholeMessages(
  connection: NatsConnection,
  one: FoundStream,
  options: WholeOptions,
): AsyncGenerator<WholeMessage> {
  const made = { stream: one.name.stream, created: one.state.created };
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  // One is asked in the order of the stream, the other one anywhere.
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
 * Whether what stands in the place of that message is read in its place, or the message itself is.
 * An erasure that was killed has perhaps noted nothing, and the notes may be gone.
 */
async function isReadElsewhere(original: number, erased: ErasedMessages): Promise<boolean> {
  if ((await erased.placeOf(original)) !== undefined || (await erased.isThere(original)))
    return true;
  await erased.learn(0);
  return (await erased.placeOf(original)) !== undefined;
}

interface Range extends FoundStream {
  readonly from: number;
  readonly to: number;
  /** These of it were there. */
  readonly read: ReadonlySet<number>;
}

/** What stands in the place of those that were not there. Returns how many have left it. */
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
      const place = (await erased.placeOf(sequence)) ?? 0;
      if (place >= state.firstSequence) missed++;
      continue;
    }
    if (frame.storedAtMs < storedFromMs) continue;
    const { subject, data } = frame.message;
    if (subjects.includes(subject)) yield { subject, sequence, data, storedAtMs: frame.storedAtMs };
  }
  return missed;
}
