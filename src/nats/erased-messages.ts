// Which messages of a stream were erased, and which frame was written in the place of each. Asked
// where a reader finds that messages are gone: what was erased is not lost. Reads the entries that
// were added since it asked last; where there never was an erasure, that is one question.

import type { JetStreamManager, MsgRequest, StoredMsg } from "@nats-io/jetstream";
import { apiCodes, isApiError } from "./api.ts";
import {
  type ErasedEntry,
  erasedSubjects,
  erasuresStreamOf,
  firstStoredHeader,
  type Origin,
  rewrittenSequence,
} from "./rewritten.ts";

/** More than so many, ahead of where it is read, are not held in memory. */
const heldMax = 1_000_000;
const forgetAtMin = 10_000;

/** A frame that stands in the place of another. */
export interface RewrittenFrame {
  /** Those of the message in whose place it stands. */
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly message: StoredMsg;
}

export class ErasedMessages {
  readonly #manager: JetStreamManager;
  readonly #origin: Omit<Origin, "sequence">;
  readonly #held = new Map<number, number>();
  #next = 1;
  #from = 0;
  #forgetAt = forgetAtMin;

  /** `created`: when the stream was made, as the server says it. */
  constructor(manager: JetStreamManager, origin: Omit<Origin, "sequence">) {
    this.#manager = manager;
    this.#origin = origin;
  }

  get created(): string {
    return this.#origin.created;
  }

  /**
   * Learns what was erased until now. What is before `from` is not held. Rejects when NATS does not
   * answer, or this user may not ask.
   */
  async learn(from: number): Promise<void> {
    if (from < this.#from) this.#next = 1;
    this.#from = from;
    for (;;) {
      const entry = await this.#entryFrom(this.#next);
      if (entry === undefined) return;
      this.#next = entry.seq + 1;
      const { created, messages } = entry.json<ErasedEntry>();
      if (created !== this.#origin.created) continue;
      for (let at = 0; at + 1 < messages.length; at += 2)
        if (messages[at]! >= from) this.#held.set(messages[at]!, messages[at + 1]!);
      this.#forget();
    }
  }

  /** A reader asks at every hole, so what it has passed goes now and then alone. */
  #forget(): void {
    if (this.#held.size < this.#forgetAt) return;
    for (const sequence of this.#held.keys())
      if (sequence < this.#from) this.#held.delete(sequence);
    this.#forgetAt = Math.max(forgetAtMin, 2 * this.#held.size);
    if (this.#held.size > heldMax)
      throw new Error(`more than ${heldMax} messages of ${this.#origin.stream} were erased`);
  }

  /** Whether it was erased, and nothing of it is missed. */
  has(sequence: number): boolean {
    return this.#held.has(sequence);
  }

  /** The number of the frame in its place; 0: nothing of it is left. */
  placeOf(sequence: number): number | undefined {
    return this.#held.get(sequence);
  }

  /** From here on the stream has all that it is to have; `first`: its first message. */
  firstOf(first: number): number {
    let sequence = first;
    while (this.#held.has(sequence - 1)) sequence--;
    return sequence;
  }

  /** Those between the two, both included, in order. */
  between(from: number, to: number): number[] {
    if (to - from < this.#held.size) {
      const all: number[] = [];
      for (let sequence = from; sequence <= to; sequence++)
        if (this.has(sequence)) all.push(sequence);
      return all;
    }
    return [...this.#held.keys()].filter((one) => one >= from && one <= to).sort((a, b) => a - b);
  }

  /** The frame in the place of that message; undefined: nothing is there, or no longer. */
  async frameAt(sequence: number): Promise<RewrittenFrame | undefined> {
    for (let tried = 0; ; ) {
      const place = this.#held.get(sequence) ?? 0;
      if (place === 0 || place === tried) return undefined;
      tried = place;
      const message = await this.#manager.streams.getMessage(this.#origin.stream, { seq: place });
      if (message !== null && rewrittenSequence(message.header, this.#origin) === sequence) {
        const storedAtMs = Number(message.header.get(firstStoredHeader));
        return { sequence, storedAtMs, message };
      }
      // It may have been written anew once more; that was noted before it went.
      await this.learn(this.#from);
    }
  }

  /**
   * Whether what a frame holds, which was written in the place of that message, is in another one:
   * an erasure that was killed may have stored it without anybody being told.
   */
  async isStray(sequence: number, origin: number): Promise<boolean> {
    const place = this.#held.get(origin);
    return place === undefined ? await this.isThere(origin) : place !== sequence;
  }

  /** Whether the stream still has the message itself. */
  async isThere(sequence: number): Promise<boolean> {
    const { streams } = this.#manager;
    return (await streams.getMessage(this.#origin.stream, { seq: sequence })) !== null;
  }

  async #entryFrom(sequence: number): Promise<StoredMsg | undefined> {
    const { stream } = this.#origin;
    const query = { seq: sequence, next_by_subj: `${erasedSubjects(stream)}>` };
    try {
      const request: MsgRequest = query;
      const found = await this.#manager.streams.getMessage(erasuresStreamOf(stream), request);
      return found ?? undefined;
    } catch (error) {
      if (isApiError(error, apiCodes.streamNotFound)) return undefined;
      throw error;
    }
  }
}
