// Finds the erased messages of a stream, and the frames that replace them. A reader must not count
// erased messages as lost.

import type { JetStreamManager, MsgRequest, StoredMsg } from "@nats-io/jetstream";
import { apiCodes, isApiError, ledStreamInfo, managerOf } from "./api.ts";
import type { NatsLink } from "./link.ts";
import { bucketSubjects, messageIdHeader } from "./names.ts";
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
const heldMax = 500_000;
const isReplacement = -1;

export interface RewrittenFrame {
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly message: StoredMsg;
}

/**
 * The caller must wait for each call before the next one, because a call may remove entries that
 * another call needs.
 */
export class ErasedMessages {
  readonly #manager: JetStreamManager;
  readonly #of: MadeStream;
  /** Maps the sequence of an erased message to that of its replacement, or to 0 if it has none. */
  readonly #held = new Map<number, number>();
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
   * Reads the erased messages from the sequence `from` on. Entries below it may be removed. Rejects
   * if NATS does not respond.
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
        if (place > 0 && !this.#held.has(place)) this.#hold(place, isReplacement);
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

  #forget(): void {
    if (this.#held.size < this.#forgetAt) return;
    for (const sequence of this.#held.keys())
      if (sequence < this.#from) this.#held.delete(sequence);
    if (this.#held.size > heldMax) {
      this.#until = Float64Array.from(this.#held.keys()).sort()[heldMax]!;
      for (const sequence of this.#held.keys())
        if (sequence >= this.#until) this.#held.delete(sequence);
    }
    this.#forgetAt = Math.max(forgetAtMin, 2 * this.#held.size);
  }

  async #heldOf(sequence: number): Promise<number | undefined> {
    if (!this.#reaches(sequence)) await this.learn(sequence);
    return this.#held.get(sequence);
  }

  /**
   * Returns the sequence of the replacement, or 0. Returns undefined if the
   * message was not erased.
   */
  async replacementOf(sequence: number): Promise<number | undefined> {
    const held = await this.#heldOf(sequence);
    return held === isReplacement ? undefined : held;
  }

  /**
   * Finds the erased messages directly before `first`. Returns the sequence of the first of them,
   * which is at least `from`. If there are none, returns `first`.
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
   * Yields the erased messages from `from` up to `first`, excluding `first`. Only messages whose
   * replacements have a sequence of at least `first` are included.
   */
  async *standing(first: number, from: number): AsyncGenerator<number> {
    for await (const sequence of this.between(from, first - 1))
      if (((await this.replacementOf(sequence)) ?? 0) >= first) yield sequence;
  }

  async *between(from: number, to: number): AsyncGenerator<number> {
    for (let at = from; at <= to; ) {
      if (!this.#reaches(at)) await this.learn(at);
      const end = Math.min(to, this.#until - 1);
      yield* this.#heldBetween(at, end);
      at = end + 1;
    }
  }

  #heldBetween(from: number, to: number): number[] {
    const isErased = (sequence: number) =>
      (this.#held.get(sequence) ?? isReplacement) !== isReplacement;
    if (to - from < this.#held.size) {
      const all: number[] = [];
      for (let sequence = from; sequence <= to; sequence++)
        if (isErased(sequence)) all.push(sequence);
      return all;
    }
    const within = [...this.#held.keys()].filter((one) => one >= from && one <= to);
    return within.filter(isErased).sort((a, b) => a - b);
  }

  async frameAt(sequence: number): Promise<RewrittenFrame | undefined> {
    for (let tried = 0; ; ) {
      const place = (await this.replacementOf(sequence)) ?? 0;
      if (place === 0 || place === tried) return undefined;
      tried = place;
      const message = await this.#manager.streams.getMessage(this.#of.stream, { seq: place });
      if (message !== null && rewrittenSequence(message.header, this.#of) === sequence) {
        const storedAtMs = Number(message.header.get(firstStoredHeader));
        return { sequence, storedAtMs, message };
      }
      // The replacement may also have been replaced. The bucket records this before the replacement
      // is removed.
      await this.learn();
    }
  }

  async isStray(sequence: number, original: number): Promise<boolean> {
    const held = await this.#heldOf(sequence);
    if (held !== undefined) return held !== isReplacement;
    const all = this.#reaches(original) ? this : new ErasedMessages(this.#manager, this.#of);
    return (await all.replacementOf(original)) !== undefined || (await this.isThere(original));
  }

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

/**
 * Checks whether a stream still contains the original of a duplicate. An erased original also
 * counts as stored. Otherwise, its events would be stored again, and with them the data of the
 * person.
 */
export class StoredMessages {
  readonly #link: Pick<NatsLink, "connection">;
  readonly #timeoutMs: number;
  #manager: Promise<JetStreamManager> | undefined;
  readonly #erased = new Map<string, ErasedMessages>();
  readonly #asked = new Map<string, Promise<unknown>>();

  constructor(link: Pick<NatsLink, "connection">, timeoutMs: number) {
    this.#link = link;
    this.#timeoutMs = timeoutMs;
  }

  async has(stream: string, sequence: number, messageId: string): Promise<boolean> {
    this.#manager ??= managerOf(this.#link.connection, { timeoutMs: this.#timeoutMs });
    const manager = await this.#manager;
    const message = await manager.streams.getMessage(stream, { seq: sequence });
    if (message !== null) return message.header.get(messageIdHeader) === messageId;
    const before = this.#asked.get(stream) ?? Promise.resolve();
    const asked = before.then(() => this.#isErased(manager, stream, sequence));
    this.#asked.set(
      stream,
      asked.catch(() => {}),
    );
    return await asked;
  }

  async #isErased(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
    const info = await ledStreamInfo(manager, stream);
    if (info === undefined) return false;
    const { created } = info;
    const known = this.#erased.get(stream);
    const erased =
      known?.created === created ? known : new ErasedMessages(manager, { stream, created });
    this.#erased.set(stream, erased);
    await (erased === known ? erased.learn() : erased.learn(sequence));
    return (
      (await erased.replacementOf(sequence)) === 0 || (await erased.frameAt(sequence)) !== undefined
    );
  }
}
