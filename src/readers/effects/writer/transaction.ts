// The transactions of the effects: their events, when they are written, which commit each follows,
// and waits for their end.

import { randomInt } from "node:crypto";
import { atMost } from "../../../platform/base/retry.ts";
import type { StreamItem } from "../../stream/stream-reader.ts";
import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

/** Everything in a commit except its number and predecessor. */
export type Changes = Omit<Commit, "after" | "number" | "isPart">;

/** Numbers are drawn below this limit, the maximum of randomInt. */
const numberEnd = 2 ** 48 - 1;

/** The commits of one writer, each of which names its predecessor. */
export class CommitChain {
  readonly #store: Pick<EffectsStore, "commit">;
  #last = 0;
  #next = newNumber();

  constructor(store: Pick<EffectsStore, "commit">) {
    this.#store = store;
  }

  /** Continues after that commit of the store; 0: the store has no commit. */
  begin(last: number): void {
    this.#last = last;
    this.#next = newNumber();
  }

  /** `isPart`: the commit is not complete with that. Rejects as the store does. */
  async write(changes: Changes, isPart: boolean): Promise<void> {
    const number = this.#next;
    await this.#store.commit({ after: this.#last, number, isPart, ...changes });
    if (!isPart) this.begin(number);
  }
}

/**
 * A number that no other commit has, except with a probability of 10^-14. Never 0, which means no
 * commit.
 */
function newNumber(): number {
  return randomInt(1, numberEnd);
}

/** Whether a transaction is being written, in one piece or several. */
export class OpenTransaction {
  #end: PromiseWithResolvers<void> | undefined;

  begin(): void {
    this.#end ??= Promise.withResolvers();
  }

  /** The transaction is committed or rolled back. */
  end(): void {
    this.#end?.resolve();
    this.#end = undefined;
  }

  /**
   * Fulfilled when none is open: a call to the store right afterwards comes before the next
   * transaction.
   */
  async ended(): Promise<void> {
    while (this.#end !== undefined) await this.#end.promise;
  }
}

type Outbox = Pick<EffectsStore, "outbox" | "published" | "trimOutbox">;

/**
 * The store's outbox, from which rows are removed only while no transaction is open: a removal
 * within a transaction that is rolled back would return the row, and it would be published again.
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

/** Maximum time for which a batch waits for frames that a stream is known to have. */
const batchMsMax = 1_000;
/** A batch ends after this much work: with large rows each event may take milliseconds. */
const workMsMax = 3_000;
/** Factor by which a batch may grow while the previous one is being committed. */
const batchGrowth = 2;

/**
 * The progress of a batch, and when it is full. Results do not depend on where it ends, so it may
 * use a clock.
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
   * Many events of one person change one row, so a batch is limited by its changes. A batch with
   * written parts ends with the current step, because other projects would wait for the rest.
   */
  hasRoom(eventsMax: number, isOtherInFlight: boolean): boolean {
    if (this.hasParts || this.#workMs >= workMsMax) return false;
    return this.events < (isOtherInFlight ? batchGrowth : 1) * eventsMax;
  }

  /** Adds items that are applied in the batch. */
  add(items: readonly StreamItem[]): void {
    for (const item of items) {
      if (item.kind !== "frame") continue;
      this.events += item.events;
      const { stream, storedAtMs } = item.frame;
      if (!item.isReread && !this.#storedAtMs.has(stream)) this.#storedAtMs.set(stream, storedAtMs);
    }
  }

  committed(): void {
    this.#storedAtMs.clear();
  }

  /** When the oldest uncommitted frame of the stream in this batch was stored. */
  storedAtMs(stream: string): number | undefined {
    return this.#storedAtMs.get(stream);
  }

  /** Adds the duration of a step. */
  async timed(step: () => Promise<void>): Promise<void> {
    const sinceMonotonicMs = performance.now();
    await step();
    this.#workMs += performance.now() - sinceMonotonicMs;
  }
}

const everyMsDefault = 50;
/** How long a batch waits for frames that a stream is known to have. */
const moreMsMax = 100;

/**
 * The interval between commits when few events arrive. A commit costs about as much for one event
 * as for a hundred, and many per second are most of the cost of the effects at low rates. So events
 * within some hundredths of a second are committed together, unless a client waits for them.
 */
export class CommitPace {
  readonly #everyMs: number;
  #begunMonotonicMs = Number.NEGATIVE_INFINITY;
  #rest: AbortController | undefined;

  /** Minimum time from the start of a commit to that of the next one. */
  constructor(everyMs: number = everyMsDefault) {
    this.#everyMs = everyMs;
  }

  /** A commit begins. */
  begun(): void {
    this.#begunMonotonicMs = performance.now();
  }

  /** Fulfilled when the next commit may begin, when `more` is, or when a client waits. */
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

/** Fulfilled when the next known frames have arrived, or after a timeout. */
export async function knownMore(more: Promise<void>): Promise<void> {
  await atMost(moreMsMax, more);
}
