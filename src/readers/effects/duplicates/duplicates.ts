// Detects whether a stream already had an event (with the same uuid, name and distinct id) within a
// window of 30 to 60 minutes. The state is two generations of hashes and is never stored. Two
// stored sequences define the first line of each generation, so reading the stream again from there
// restores the state.

import type { Lane } from "../../../platform/base/lane.ts";
import type { StoredLine } from "../lines/line.ts";
import { recordMs } from "../lines/record-time.ts";
import type { Position } from "../types.ts";
import type { DuplicatesBudget } from "./duplicates-budget.ts";
import { HashSet64 } from "./hash-set.ts";

const generationMs = 30 * 60_000;

/**
 * The stored part of the state: committed as part of the stream's position, in the transaction of
 * the lines counted so far.
 */
type DuplicatesPosition = Pick<Position, "duplicatesFrom" | "watermarkMs">;

interface Scalars extends DuplicatesPosition {
  /** The watermark at the start of each generation, in milliseconds. */
  readonly sinceMs: readonly [previous: number, current: number];
}

/** A rotation of the generations that `discard` can undo. */
interface Rotation {
  /** Number of hashes in the journal at the rotation. */
  readonly journal: number;
  readonly retired: HashSet64;
}

/**
 * The duplicate detection of one stream in one epoch. The caller calls `add` for each line, and
 * `endFrame` after each frame.
 *
 * If the stream has a position at the start, the caller passes the position to the constructor,
 * reads the frames again from `duplicatesFrom[0]` up to and including the position's `sequence`,
 * calls `remember` for each line, and then `restored`. A stream that was recreated or lost its tail
 * needs a new object.
 *
 * After a failed commit, `discard` removes everything since the last commit, so the stream need not
 * be read again. This takes 8 bytes per uncommitted line, and a third generation while the end of
 * the first one is not committed.
 *
 * A generation ends with the frame in which the watermark (the newest `recordMs`, which never
 * decreases) enters another half hour of the clock, or in which the budget has no room. So
 * duplicates depend on the frames and the budget, never on how the frames are batched.
 */
export class Duplicates {
  readonly #budget: DuplicatesBudget;
  readonly #lane: Lane;
  #current = new HashSet64();
  #previous = new HashSet64();
  /** The state at the end of the last frame. */
  #scalars: Scalars;
  #watermarkMs: number;
  /** Whether the lines restored so far precede the current generation. */
  #isBeforeCurrent: boolean;

  /** The hashes added since the last commit, two words each. */
  #journal = new Int32Array(256);
  #journalled = 0;
  #rotations: Rotation[] = [];
  #committed: Scalars;
  #inFlight: { journal: number; rotations: number; scalars: Scalars } | undefined;

  constructor(options: {
    readonly budget: DuplicatesBudget;
    readonly lane: Lane;
    readonly position: DuplicatesPosition | undefined;
  }) {
    const { duplicatesFrom = [1, 1] as const, watermarkMs = 0 } = options.position ?? {};
    this.#budget = options.budget;
    this.#lane = options.lane;
    this.#watermarkMs = watermarkMs;
    this.#scalars = { duplicatesFrom, watermarkMs, sinceMs: [watermarkMs, watermarkMs] };
    this.#committed = this.#scalars;
    this.#isBeforeCurrent = options.position !== undefined;
    this.#budget.addStream(this.#lane);
    this.#budget.count(this.#bytes());
  }

  /** The newest `recordMs` so far, including the current batch; 0 if there was no line. */
  get watermarkMs(): number {
    return this.#watermarkMs;
  }

  /**
   * Period in milliseconds in which duplicates are detected now. Approximate after a start; only
   * for a gauge.
   */
  get coveredMs(): number {
    return this.#watermarkMs - this.#scalars.sinceMs[0];
  }

  /**
   * Adds a line and returns whether it is a duplicate. Called for each readable line, in order.
   * Allocates no objects.
   */
  add(line: StoredLine): boolean {
    const high = line.uuidHashHigh;
    const low = line.uuidHashLow;
    const ms = recordMs(line);
    if (ms > this.#watermarkMs) this.#watermarkMs = ms;
    // A duplicate of a line in the previous generation is also added to the current one, so that a
    // generation has the hashes of all its lines, as if it were restored from the stream.
    if (!this.#addToCurrent(high, low)) return true;
    if (2 * this.#journalled === this.#journal.length) this.#growJournal();
    this.#journal[2 * this.#journalled] = high;
    this.#journal[2 * this.#journalled + 1] = low;
    this.#journalled++;
    return this.#previous.has(high, low);
  }

  /** Ends a frame. Called after the last line of each frame, even if the frame has no lines. */
  endFrame(sequence: number): void {
    const { duplicatesFrom, watermarkMs, sinceMs } = this.#scalars;
    const now = this.#watermarkMs;
    const isFirst = watermarkMs === 0;
    const isOver = !isFirst && generationOf(now) !== generationOf(watermarkMs);
    if (isOver || this.#hasNoRoom()) {
      this.#rotations.push({ journal: this.#journalled, retired: this.#previous });
      this.#rotate();
      this.#scalars = {
        duplicatesFrom: [duplicatesFrom[1], sequence + 1],
        watermarkMs: now,
        sinceMs: [sinceMs[1], now],
      };
    } else if (now !== watermarkMs) {
      const since = isFirst ? ([now, now] as const) : sinceMs;
      this.#scalars = { duplicatesFrom, watermarkMs: now, sinceMs: since };
    }
  }

  /**
   * Restores a line, instead of `add`. Called at the start for the lines from `duplicatesFrom[0]`
   * up to the position.
   */
  remember(line: StoredLine): void {
    const { duplicatesFrom, sinceMs } = this.#scalars;
    if (this.#isBeforeCurrent && line.frame.sequence >= duplicatesFrom[1]) this.#beginCurrent();
    const ms = recordMs(line);
    if (ms < sinceMs[this.#isBeforeCurrent ? 0 : 1]) this.#beganBy(ms);
    this.#addToCurrent(line.uuidHashHigh, line.uuidHashLow);
  }

  /** Ends the restoration. Called after the last `remember`. */
  restored(): void {
    if (this.#isBeforeCurrent) this.#beginCurrent();
    this.#committed = this.#scalars;
  }

  /**
   * Returns the state to store in the transaction of all lines so far. Called only between frames.
   * The next lines may be added before the commit is complete.
   */
  changes(): DuplicatesPosition {
    this.#inFlight = {
      journal: this.#journalled,
      rotations: this.#rotations.length,
      scalars: this.#scalars,
    };
    const { duplicatesFrom, watermarkMs } = this.#scalars;
    return { duplicatesFrom, watermarkMs };
  }

  /** Records that the result of the last `changes` is committed. */
  committed(): void {
    if (this.#inFlight === undefined) return;
    const { journal, rotations, scalars } = this.#inFlight;
    this.#journal.copyWithin(0, 2 * journal, 2 * this.#journalled);
    this.#journalled -= journal;
    this.#rotations = this.#rotations
      .slice(rotations)
      .map((one) => ({ ...one, journal: one.journal - journal }));
    this.#committed = scalars;
    this.#inFlight = undefined;
  }

  /**
   * Removes all lines since the last commit, including those of a running commit. They will be read
   * again.
   */
  discard(): void {
    let end = this.#journalled;
    for (const { journal, retired } of this.#rotations.reverse()) {
      this.#budget.count(retired.bytes - this.#current.bytes);
      this.#current = this.#previous;
      this.#previous = retired;
      end = journal;
    }
    for (let at = 0; at < end; at++)
      this.#current.delete(this.#journal[2 * at]!, this.#journal[2 * at + 1]!);
    this.#journalled = 0;
    this.#rotations = [];
    this.#inFlight = undefined;
    this.#scalars = this.#committed;
    this.#watermarkMs = this.#committed.watermarkMs;
  }

  /** Returns the memory to the budget. The object must not be used afterwards. */
  close(): void {
    this.#budget.count(-this.#bytes());
    this.#budget.removeStream(this.#lane);
  }

  #hasNoRoom(): boolean {
    if (!this.#current.isNearlyFull) return false;
    return !this.#budget.hasRoom(this.#lane, this.#bytes(), this.#current.bytes);
  }

  #addToCurrent(high: number, low: number): boolean {
    const bytes = this.#current.bytes;
    const isNew = this.#current.add(high, low);
    if (this.#current.bytes !== bytes) this.#budget.count(this.#current.bytes - bytes);
    return isNew;
  }

  #rotate(): void {
    const next = new HashSet64();
    this.#budget.count(next.bytes - this.#previous.bytes);
    this.#previous = this.#current;
    this.#current = next;
  }

  #beginCurrent(): void {
    this.#isBeforeCurrent = false;
    this.#rotate();
  }

  /** Moves the start of a generation back to the time of a line that is read again. */
  #beganBy(ms: number): void {
    const [previous, current] = this.#scalars.sinceMs;
    const sinceMs = this.#isBeforeCurrent
      ? ([ms, current] as const)
      : ([Math.min(previous, ms), ms] as const);
    this.#scalars = { ...this.#scalars, sinceMs };
  }

  #bytes(): number {
    return this.#current.bytes + this.#previous.bytes;
  }

  #growJournal(): void {
    const grown = new Int32Array(2 * this.#journal.length);
    grown.set(this.#journal);
    this.#journal = grown;
  }
}

/** Returns the number of the half hour of the clock. */
function generationOf(ms: number): number {
  return Math.floor(ms / generationMs);
}
