// Which messages of a stream were erased, and which frame was written in the place of each. Asked
// where a reader finds that messages are gone: what was erased is not lost. Reads the entries that
// were added since it asked last; where there never was an erasure, that is one question.

import type { JetStreamManager, MsgRequest, StoredMsg } from "@nats-io/jetstream";
import { apiCodes, isApiError } from "./api.ts";
import { bucketSubjects } from "./names.ts";
import {
  type ErasedEntry,
  erasedSubjects,
  erasuresBucketOf,
  erasuresStreamOf,
  firstStoredHeader,
  type MadeStream,
  rewrittenSequence,
} from "./rewritten.ts";

const forgetAtMin = 10_000;
/** More than so many ahead are not kept: the bucket is read again where a reader has got there. */
const keptMax = 500_000;
/** Held of a frame that stands in the place of a message, and was not erased itself. */
const stands = -1;

/** A frame that stands in the place of another. */
export interface RewrittenFrame {
  /** Those of the message in whose place it stands. */
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly message: StoredMsg;
}

/**
 * Whoever asks waits for the answer before the next question: to answer one, it may forget what
 * another one needs.
 */
export class ErasedMessages {
  readonly #manager: JetStreamManager;
  readonly #of: MadeStream;
  /** By a message's number: that of the frame in its place; 0 for none; or `stands`. */
  readonly #held = new Map<number, number>();
  /** All that is known of messages from `#from` on and before `#until` is held, and no more. */
  #from = 0;
  #until = 0;
  #next = 1;
  #forgetAt = forgetAtMin;

  constructor(manager: JetStreamManager, stream: MadeStream) {
    this.#manager = manager;
    this.#of = stream;
  }

  get created(): string {
    return this.#of.created;
  }

  /**
   * Learns what was erased until now. What is before `from` need not be held any more. Rejects when
   * NATS does not answer, or this user may not ask.
   */
  async learn(from: number = this.#from): Promise<void> {
    if (!this.#reaches(from)) {
      this.#held.clear();
      [this.#next, this.#until] = [1, Number.POSITIVE_INFINITY];
    }
    this.#from = from;
    for (;;) {
      const entry = await this.#entryFrom(this.#next);
      if (entry === undefined) return;
      this.#next = entry.seq + 1;
      const { created, messages } = entry.json<ErasedEntry>();
      if (created !== this.#of.created) continue;
      for (let at = 0; at + 1 < messages.length; at += 2) {
        const [sequence, place] = [messages[at]!, messages[at + 1]!];
        this.#hold(sequence, place);
        if (place > 0 && !this.#held.has(place)) this.#hold(place, stands);
      }
      this.#forget();
    }
  }

  #reaches(sequence: number): boolean {
    return sequence >= this.#from && sequence < this.#until;
  }

  #hold(sequence: number, place: number): void {
    if (this.#reaches(sequence)) this.#held.set(sequence, place);
  }

  /** A reader asks at every hole, so what it has passed goes now and then alone. */
  #forget(): void {
    if (this.#held.size < this.#forgetAt) return;
    for (const sequence of this.#held.keys())
      if (sequence < this.#from) this.#held.delete(sequence);
    if (this.#held.size > keptMax) {
      this.#until = Float64Array.from(this.#held.keys()).sort()[keptMax]!;
      for (const sequence of this.#held.keys())
        if (sequence >= this.#until) this.#held.delete(sequence);
    }
    this.#forgetAt = Math.max(forgetAtMin, 2 * this.#held.size);
  }

  async #heldOf(sequence: number): Promise<number | undefined> {
    if (!this.#reaches(sequence)) await this.learn(sequence);
    return this.#held.get(sequence);
  }

  /** The number of the frame in its place; 0: nothing is there; undefined: it is not erased. */
  async placeOf(sequence: number): Promise<number | undefined> {
    const held = await this.#heldOf(sequence);
    return held === stands ? undefined : held;
  }

  /**
   * From here on, and not before `from`, the stream has all that it is to have; `first`: its first
   * message.
   */
  async firstOf(first: number, from: number): Promise<number> {
    let [begin, due] = [first, from];
    for await (const sequence of this.between(from, first - 1)) {
      if (sequence !== due || begin === first) begin = sequence;
      due = sequence + 1;
    }
    return due === first ? begin : first;
  }

  /**
   * Those from `from` on and before `first`, the stream's first message, whose frames the stream
   * still has: they were stored later than what was beside them.
   */
  async *standing(first: number, from: number): AsyncGenerator<number> {
    for await (const sequence of this.between(from, first - 1))
      if (((await this.placeOf(sequence)) ?? 0) >= first) yield sequence;
  }

  /** Those between the two, both included, in order. */
  async *between(from: number, to: number): AsyncGenerator<number> {
    for (let at = from; at <= to; ) {
      if (!this.#reaches(at)) await this.learn(at);
      const end = Math.min(to, this.#until - 1);
      yield* this.#heldBetween(at, end);
      at = end + 1;
    }
  }

  #heldBetween(from: number, to: number): number[] {
    const isErased = (sequence: number) => (this.#held.get(sequence) ?? stands) !== stands;
    if (to - from < this.#held.size) {
      const all: number[] = [];
      for (let sequence = from; sequence <= to; sequence++)
        if (isErased(sequence)) all.push(sequence);
      return all;
    }
    const within = [...this.#held.keys()].filter((one) => one >= from && one <= to);
    return within.filter(isErased).sort((a, b) => a - b);
  }

  /** The frame in the place of that message; undefined: nothing is there, or no longer. */
  async frameAt(sequence: number): Promise<RewrittenFrame | undefined> {
    for (let tried = 0; ; ) {
      const place = (await this.placeOf(sequence)) ?? 0;
      if (place === 0 || place === tried) return undefined;
      tried = place;
      const message = await this.#manager.streams.getMessage(this.#of.stream, { seq: place });
      if (message !== null && rewrittenSequence(message.header, this.#of) === sequence) {
        const storedAtMs = Number(message.header.get(firstStoredHeader));
        return { sequence, storedAtMs, message };
      }
      // It may have been written anew once more; that was noted before it went.
      await this.learn();
    }
  }

  /**
   * Whether what a frame holds, which was written in the place of that message, is in another one:
   * an erasure that was killed may have stored it without anybody being told.
   */
  async isStray(sequence: number, original: number): Promise<boolean> {
    const held = await this.#heldOf(sequence);
    if (held !== undefined) return held !== stands;
    // What is held here goes on being asked for in order, so another one looks so far back.
    const all = this.#reaches(original) ? this : new ErasedMessages(this.#manager, this.#of);
    return (await all.placeOf(original)) !== undefined || (await this.isThere(original));
  }

  /** Whether the stream still has the message itself. */
  async isThere(sequence: number): Promise<boolean> {
    const { streams } = this.#manager;
    return (await streams.getMessage(this.#of.stream, { seq: sequence })) !== null;
  }

  #entryFrom(sequence: number): Promise<StoredMsg | undefined> {
    const { stream } = this.#of;
    return entryFrom(this.#manager, stream, { sequence, subjects: `${erasedSubjects(stream)}>` });
  }
}

interface Entries {
  readonly sequence: number;
  readonly subjects: string;
}

/** The first entry of these subjects from there on, in the bucket that notes the stream's erasures. */
async function entryFrom(
  manager: JetStreamManager,
  stream: string,
  { sequence, subjects }: Entries,
): Promise<StoredMsg | undefined> {
  const request: MsgRequest & { readonly next_by_subj: string } = {
    seq: sequence,
    next_by_subj: subjects,
  };
  try {
    return (await manager.streams.getMessage(erasuresStreamOf(stream), request)) ?? undefined;
  } catch (error) {
    if (isApiError(error, apiCodes.streamNotFound)) return undefined;
    throw error;
  }
}

/** The projects of which people were erased from this stream's installation, by the receipts. */
export async function erasedProjects(
  manager: JetStreamManager,
  stream: string,
): Promise<ReadonlySet<string>> {
  const projects = new Set<string>();
  const subjects = `${bucketSubjects(erasuresBucketOf(stream))}receipt.>`;
  for (let next = 1; ; ) {
    const entry = await entryFrom(manager, stream, { sequence: next, subjects });
    if (entry === undefined) return projects;
    next = entry.seq + 1;
    const { project } = entry.json<{ readonly project?: unknown }>();
    if (typeof project === "string") projects.add(project);
  }
}
