import { randomInt } from "node:crypto";
import { atMost } from "../../../platform/base/retry.ts";
import type { StreamItem } from "../../stream/stream-reader.ts";
import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

export type Changes = Omit<Commit, "after" | "number" | "isPart">;

const numberEnd = 2 ** 48 - 1;

/** Receives the commits of a writer. It counts parts when the commit is complete. */
export interface CommitCounts {
  part(commit: Commit, seconds: number): void;
  committed(commit: Commit, seconds: number): void;
  failed(): void;
  undone(): void;
}

export class CommitChain {
  readonly #store: Pick<EffectsStore, "commit">;
  readonly #counts: CommitCounts | undefined;
  #last = 0;
  #next = newNumber();

  constructor(store: Pick<EffectsStore, "commit">, counts?: CommitCounts) {
    this.#store = store;
    this.#counts = counts;
  }

  begin(last: number): void {
    this.#counts?.undone();
    this.#last = last;
    this.#next = newNumber();
  }

  async write(changes: Changes, isPart: boolean): Promise<void> {
    const number = this.#next;
    const commit = { after: this.#last, number, isPart, ...changes };
    const sinceMonotonicMs = performance.now();
    try {
      await this.#store.commit(commit);
    } catch (error) {
      this.#counts?.failed();
      throw error;
    }
    const seconds = (performance.now() - sinceMonotonicMs) / 1_000;
    if (isPart) {
      this.#counts?.part(commit, seconds);
      return;
    }
    this.#counts?.committed(commit, seconds);
    this.begin(number);
  }
}

/** Returns a random number that is not 0, because 0 means that there is no commit. */
function newNumber(): number {
  return randomInt(1, numberEnd);
}

export class OpenTransaction {
  #end: PromiseWithResolvers<void> | undefined;

  begin(): void {
    this.#end ??= Promise.withResolvers();
  }

  end(): void {
    this.#end?.resolve();
    this.#end = undefined;
  }

  async ended(): Promise<void> {
    while (this.#end !== undefined) await this.#end.promise;
  }
}

type Outbox = Pick<EffectsStore, "outbox" | "published" | "trimOutbox">;

/**
 * Delays removals from the outbox until no transaction is open. If a removal were rolled back, the
 * message would be published again.
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

const batchMsMax = 1_000;
const workMsMax = 3_000;
const batchGrowth = 2;

/** A batch of frames. It may use a clock, because the results do not depend on where it ends. */
export class Batch {
  events = 0;
  hasParts = false;
  readonly #begunMonotonicMs = performance.now();
  readonly #storedAtMs = new Map<string, number>();
  #workMs = 0;

  get mayWait(): boolean {
    return performance.now() - this.#begunMonotonicMs < batchMsMax;
  }

  /**
   * Returns true if the batch may grow. Returns false if a part of the batch is already written,
   * because an erasure would have to wait for the open transaction.
   */
  hasRoom(eventsMax: number, isOtherInFlight: boolean): boolean {
    if (this.hasParts || this.#workMs >= workMsMax) return false;
    return this.events < (isOtherInFlight ? batchGrowth : 1) * eventsMax;
  }

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

  storedAtMs(stream: string): number | undefined {
    return this.#storedAtMs.get(stream);
  }

  async timed(step: () => Promise<void>): Promise<void> {
    const sinceMonotonicMs = performance.now();
    await step();
    this.#workMs += performance.now() - sinceMonotonicMs;
  }
}

const everyMsDefault = 50;
const moreMsMax = 100;

/**
 * Ensures a minimum interval between commits when few events arrive. A commit of one event takes
 * about as long as a commit of a hundred events.
 */
export class CommitPace {
  readonly #everyMs: number;
  #begunMonotonicMs = Number.NEGATIVE_INFINITY;
  #rest: AbortController | undefined;

  constructor(everyMs: number = everyMsDefault) {
    this.#everyMs = everyMs;
  }

  begun(): void {
    this.#begunMonotonicMs = performance.now();
  }

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

export async function knownMore(more: Promise<void>): Promise<void> {
  await atMost(moreMsMax, more);
}
