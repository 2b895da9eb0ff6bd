// Manages the transactions of the effects: their size and interval, the order of commits, and waits
// for the end of a transaction.

import { randomInt } from "node:crypto";
import { atMost } from "../../../platform/base/retry.ts";
import type { StreamItem } from "../../stream/stream-reader.ts";
import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

/** The content of a commit without its number and predecessor. */
export type Changes = Omit<Commit, "after" | "number" | "isPart">;

/** Exclusive upper limit of commit numbers: the maximum of randomInt. */
const numberEnd = 2 ** 48 - 1;

/** The commits of one writer. Each contains the number of its predecessor. */
export class CommitChain {
  readonly #store: Pick<EffectsStore, "commit">;
  #last = 0;
  #next = newNumber();

  constructor(store: Pick<EffectsStore, "commit">) {
    this.#store = store;
  }

  /** Continues after the given last commit of the store; 0 if the store has no commit. */
  begin(last: number): void {
    this.#last = last;
    this.#next = newNumber();
  }

  /** Writes a commit, or a part of one if `isPart`. Rejects as the store does. */
  async write(changes: Changes, isPart: boolean): Promise<void> {
    const number = this.#next;
    await this.#store.commit({ after: this.#last, number, isPart, ...changes });
    if (!isPart) this.begin(number);
  }
}

/**
 * Returns a random number for a commit. The probability that another commit has the same number is
 * 10^-14. Never 0, which means that there is no commit.
 */
function newNumber(): number {
  return randomInt(1, numberEnd);
}

/** The state of the current transaction, which is written in one or several parts. */
export class OpenTransaction {
  #end: PromiseWithResolvers<void> | undefined;

  begin(): void {
    this.#end ??= Promise.withResolvers();
  }

  /** Resolves the waits when the transaction is committed or rolled back. */
  end(): void {
    this.#end?.resolve();
    this.#end = undefined;
  }

  /**
   * Waits until no transaction is open. A call to the store immediately afterwards precedes the
   * next transaction.
   */
  async ended(): Promise<void> {
    while (this.#end !== undefined) await this.#end.promise;
  }
}

type Outbox = Pick<EffectsStore, "outbox" | "published" | "trimOutbox">;

/**
 * Returns the store's outbox with removals that wait until no transaction is open. If a removal
 * were part of a transaction that is rolled back, the row would return and be published again.
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

/** Maximum age in milliseconds of a batch that still waits for frames of a backlog. */
const batchMsMax = 1_000;
/**
 * Milliseconds of work after which a batch ends. With large rows, one event may take milliseconds.
 */
const workMsMax = 3_000;
/** Factor by which a batch may grow while the previous one is being committed. */
const batchGrowth = 2;

/**
 * The progress and the limits of a batch. Results do not depend on where a batch ends, so this
 * class may use a clock.
 */
export class Batch {
  events = 0;
  /** Whether parts of the batch's transaction are already written. */
  hasParts = false;
  readonly #begunMonotonicMs = performance.now();
  /**
   * Storage time of the first new frame of each stream in the batch, until the batch is committed.
   */
  readonly #storedAtMs = new Map<string, number>();
  #workMs = 0;

  get mayWait(): boolean {
    return performance.now() - this.#begunMonotonicMs < batchMsMax;
  }

  /**
   * Returns whether the batch can grow. Changed rows limit a batch separately (see
   * `Applier.isFull`), because many events of one person change one row. A batch with written parts
   * ends with the current step, because other projects would have to wait for the rest.
   */
  hasRoom(eventsMax: number, isOtherInFlight: boolean): boolean {
    if (this.hasParts || this.#workMs >= workMsMax) return false;
    return this.events < (isOtherInFlight ? batchGrowth : 1) * eventsMax;
  }

  /** Counts items that are applied in the batch. */
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

  /** Returns the storage time of the stream's oldest uncommitted frame in this batch. */
  storedAtMs(stream: string): number | undefined {
    return this.#storedAtMs.get(stream);
  }

  /** Runs a step and adds its duration to the batch's work. */
  async timed(step: () => Promise<void>): Promise<void> {
    const sinceMonotonicMs = performance.now();
    await step();
    this.#workMs += performance.now() - sinceMonotonicMs;
  }
}

const everyMsDefault = 50;
/** Maximum milliseconds for which a batch waits once for frames of a backlog. */
const moreMsMax = 100;

/**
 * The interval between commits when few events arrive. A commit takes about as long for one event
 * as for a hundred, and at low rates commits are most of the load of the effects. Events of some
 * hundredths of a second are therefore committed together, unless a client waits for them.
 */
export class CommitPace {
  readonly #everyMs: number;
  #begunMonotonicMs = Number.NEGATIVE_INFINITY;
  #rest: AbortController | undefined;

  /**
   * Creates a pace. `everyMs` is the minimum time from the start of a commit to the start of the
   * next one.
   */
  constructor(everyMs: number = everyMsDefault) {
    this.#everyMs = everyMs;
  }

  /** Records the start of a commit. */
  begun(): void {
    this.#begunMonotonicMs = performance.now();
  }

  /**
   * Waits until one of these happens: the next commit may begin, `more` is fulfilled, or `hurry` is
   * called for a waiting client.
   */
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

/** Waits until `more` is fulfilled, or `moreMsMax` are over. */
export async function knownMore(more: Promise<void>): Promise<void> {
  await atMost(moreMsMax, more);
}
