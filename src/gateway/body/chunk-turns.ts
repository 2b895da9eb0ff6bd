// Limits how much body data is read in one event loop iteration (a "turn"). Without a limit, uWS
// would read from every connection that has data. When a body has used up the limit, the
// connections of all other incomplete bodies are paused until later turns.

import { RateWindow } from "../../platform/base/rate-window.ts";

export interface ChunkedBody {
  pauseReading(): void;
  resumeReading(): void;
}

/**
 * After this number of chunks in a turn, other bodies are paused. A read of 512 KiB usually has
 * fewer.
 */
export const chunksPerTurn = 5_120;
/** A body with this number of chunks in a turn is rejected. Other bodies are paused earlier. */
export const chunksPerTurnMax = 2 * chunksPerTurn;
export const chunksSkippedMax = chunksPerTurn;
/** After this CPU time in a turn, all other bodies are paused. Reading 100 KiB takes 0.17 ms. */
export const readMsPerTurn = 6;
/** Pausing and resuming a connection takes a few microseconds. */
export const resumedPerTurnMax = 32;

interface ChunkTurnsOptions {
  readonly nextTurn: (run: () => void) => void;
  readonly workMs: () => number;
}

export class ChunkTurns<Body extends ChunkedBody> {
  readonly #nextTurn: (run: () => void) => void;
  readonly #workMs: () => number;
  readonly #bodies = new Set<Body>();
  readonly #paused = new Set<Body>();
  readonly #resting = new Set<Body>();
  #spender: Body | undefined;
  #chunks = 0;
  #sinceMs: number | undefined;
  #isTurnAwaited = false;

  constructor({ nextTurn, workMs }: ChunkTurnsOptions) {
    this.#nextTurn = nextTurn;
    this.#workMs = workMs;
  }

  get isOver(): boolean {
    return this.#chunks > chunksPerTurnMax;
  }

  isPaused(body: Body): boolean {
    return this.#paused.has(body);
  }

  count(body: Body): void {
    this.#awaitTurn();
    if (++this.#chunks === chunksPerTurn) this.#pauseOthers(body);
  }

  countLarge(body: Body): void {
    this.#awaitTurn();
    const nowMs = this.#workMs();
    this.#sinceMs ??= nowMs;
    if (this.#bodies.delete(body)) this.#bodies.add(body);
    if (nowMs - this.#sinceMs > readMsPerTurn) this.#pauseOthers(body);
  }

  add(body: Body): void {
    this.#bodies.add(body);
    if (this.#spender !== undefined) this.#pause(body);
  }

  /** The connection stays paused, because uWS would start its timeout after a resume. */
  whole(body: Body): void {
    if (this.#bodies.delete(body) && this.#paused.delete(body)) this.#resting.add(body);
  }

  answered(body: Body): void {
    this.whole(body);
    if (this.#resting.delete(body)) body.resumeReading();
  }

  gone(body: Body): void {
    this.whole(body);
    this.#resting.delete(body);
  }

  #pauseOthers(body: Body): void {
    if (this.#spender !== undefined) return;
    this.#spender = body;
    for (const other of this.#bodies) if (other !== body) this.#pause(other);
  }

  #pause(body: Body): void {
    if (this.#paused.has(body)) return;
    this.#paused.add(body);
    body.pauseReading();
  }

  #awaitTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    this.#nextTurn(() => this.#turn());
  }

  #turn(): void {
    this.#isTurnAwaited = false;
    this.#chunks = 0;
    this.#sinceMs = undefined;
    const spender = this.#spender;
    this.#spender = undefined;
    this.#resumeFirst();
    if (spender !== undefined && this.#bodies.delete(spender)) {
      this.#bodies.add(spender);
      this.#pause(spender);
    }
    if (this.#paused.size > 0) this.#awaitTurn();
  }

  #resumeFirst(): void {
    if (this.#paused.size === 0) return;
    let left = resumedPerTurnMax;
    for (const body of this.#bodies) {
      if (!this.#paused.delete(body)) continue;
      body.resumeReading();
      if (--left === 0) return;
    }
  }
}

/** If more bodies of an address are rejected per second, its chunked bodies are no longer read. */
const rejectedPerSecondMax = 4;
const addressesMax = 4_096;

/**
 * Tracks the addresses that recently sent bodies in tiny chunks. Rejecting such a body takes tens
 * of milliseconds. So after a few rejections per second, the gateway closes a connection of the
 * address when its next chunked body begins.
 */
export class ChunkSenders {
  readonly #monotonicMs: () => number;
  readonly #rejections = new Map<string, RateWindow>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  reject(address: string): void {
    const rejections =
      this.#rejections.get(address) ??
      new RateWindow({ max: rejectedPerSecondMax, monotonicMs: this.#monotonicMs });
    rejections.spend(1);
    this.#rejections.delete(address);
    this.#rejections.set(address, rejections);
    if (this.#rejections.size > addressesMax)
      this.#rejections.delete(this.#rejections.keys().next().value!);
  }

  isBarred(address: string): boolean {
    const rejections = this.#rejections.get(address);
    if (rejections === undefined) return false;
    if (rejections.left === rejectedPerSecondMax) this.#rejections.delete(address);
    return rejections.isSpent;
  }
}
