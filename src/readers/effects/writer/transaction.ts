// A transaction of the effects: which events it has, when it is written, which commit it follows, and
// what waits for its end.

import { randomInt } from "node:crypto";
import { atMost } from "../../../platform/base/retry.ts";
import type { StreamItem } from "../../stream/stream-reader.ts";
import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

/** All of a commit except its position among the others. */
export type Changes = Omit<Commit, "after" | "number" | "isPart">;

/** Numbers are drawn below it, which is the most that randomInt takes. */
const numberEnd = 2 ** 48 - 1;

/** The commits of one writer, each of which states which one it follows. */
export class CommitChain {
  readonly #store: Pick<EffectsStore, "commit">;
  #last = 0;
  #next = newNumber();

  constructor(store: Pick<EffectsStore, "commit">) {
    this.#store = store;
  }

  /** Goes on behind that commit of the store; 0: there is none. */
  begin(last: number): void {
    this.#last = last;
    this.#next = newNumber();
  }

  /** `isPart`: the commit is not over with that. Rejects as the store does. */
  async write(changes: Changes, isPart: boolean): Promise<void> {
    const number = this.#next;
    await this.#store.commit({ after: this.#last, number, isPart, ...changes });
    if (!isPart) this.begin(number);
  }
}

/** One that no other commit has, but by a chance of one in 10^14. Never 0, which is no commit. */
function newNumber(): number {
  return randomInt(1, numberEnd);
}

/** Whether a transaction is being written, in one piece or more. */
export class OpenTransaction {
  #end: PromiseWithResolvers<void> | undefined;

  begin(): void {
    this.#end ??= Promise.withResolvers();
  }

  /** It is committed or undone. */
  end(): void {
    this.#end?.resolve();
    this.#end = undefined;
  }

  /** Fulfilled when none is open: what is asked of the store at once then comes before the next. */
  async ended(): Promise<void> {
    while (this.#end !== undefined) await this.#end.promise;
  }
}

type Outbox = Pick<EffectsStore, "outbox" | "published" | "trimOutbox">;

/**
 * The store's outbox, from which rows go only while no transaction is open: what is removed within
 * one that is undone would come back, and be published again.
 */
export function outsideOf(transaction: OpenTransaction, store: Outbox): Outbox {
  return {
    outbox: (limit, afterId) => store.outbox(limit, afterId),
    async published(messageIds) {
      await transaction.ended();
      await store.published(messageIds);
    },
    async trimOutbox(rowsMax) {
      await transaction.ended();
      return await store.trimOutbox(rowsMax);
    },
  };
}

/** How long a batch goes on with waiting for what a stream is known to have. */
const batchMsMax = 1_000;
/** After so much work it ends: beside large rows each event may take milliseconds. */
const workMsMax = 3_000;
/** By how much it may grow while the one before is being committed. */
const batchGrowth = 2;

/**
 * How far a batch has come, and when it has had enough. Results do not depend on where it ends, so it
 * may ask a clock.
 */
export class Batch {
  events = 0;
  /** Whether parts of its transaction are written. */
  hasParts = false;
  readonly #begunMonotonicMs = performance.now();
  /** When the first new frame of each stream in it was stored, until they are committed. */
  readonly #storedAtMs = new Map<string, number>();
  #workMs = 0;

  get mayWait(): boolean {
    return performance.now() - this.#begunMonotonicMs < batchMsMax;
  }

  /**
   * Many events of one person make one row, so a batch goes by what it changes. One that has begun
   * to write ends with the step that did, or all projects would wait for what one of them changes.
   */
  hasRoom(eventsMax: number, isOtherInFlight: boolean): boolean {
    if (this.hasParts || this.#workMs >= workMsMax) return false;
    return this.events < (isOtherInFlight ? batchGrowth : 1) * eventsMax;
  }

  /** These are applied with it. */
  add(items: readonly StreamItem[]): void {
    for (const item of items) {
      if (item.kind !== "frame") continue;
      this.events += item.events;
      const { stream, storedAtMs } = item.frame;
      if (!item.isAgain && !this.#storedAtMs.has(stream)) this.#storedAtMs.set(stream, storedAtMs);
    }
  }

  committed(): void {
    this.#storedAtMs.clear();
  }

  /** When the oldest of the stream's frames that it holds uncommitted was stored. */
  storedAtMs(stream: string): number | undefined {
    return this.#storedAtMs.get(stream);
  }

  /** Counts the time that a step of it takes. */
  async timed(step: () => Promise<void>): Promise<void> {
    const sinceMonotonicMs = performance.now();
    await step();
    this.#workMs += performance.now() - sinceMonotonicMs;
  }
}

const everyMsDefault = 50;
/** How long a batch waits for what a stream is known to have. */
const moreMsMax = 100;

/**
 * How soon a commit may follow the last one where little comes. A commit costs about as much for one
 * event as for a hundred, and many a second are most of what effects cost beside single events. So
 * what comes within some hundredths of a second is committed together, unless somebody waits for it.
 */
export class CommitPace {
  readonly #everyMs: number;
  #begunMonotonicMs = Number.NEGATIVE_INFINITY;
  #rest: AbortController | undefined;

  /** From the beginning of a commit to that of the next one, at least. */
  constructor(everyMs: number = everyMsDefault) {
    this.#everyMs = everyMs;
  }

  /** A commit begins. */
  begun(): void {
    this.#begunMonotonicMs = performance.now();
  }

  /** Fulfilled when the next commit may begin, when `more` is, or when somebody is in a hurry. */
  async rest(more: Promise<void>): Promise<void> {
    const ms = this.#begunMonotonicMs + this.#everyMs - performance.now();
    if (ms <= 0) return;
    this.#rest = new AbortController();
    await atMost(ms, more, this.#rest);
  }

  hurry(): void {
    this.#rest?.abort();
  }
}

/** Fulfilled when more that a stream is known to have is there, or is a long time coming. */
export async function knownMore(more: Promise<void>): Promise<void> {
  await atMost(moreMsMax, more);
}
