// Tells whether a stream has had an event (its uuid, name and distinct id) before, within a window of 30 to 60 minutes. The
// memory is two generations of hashes. Which lines each of them holds is two stream sequences, so
// that reading the stream again from there makes the same memory: it is never saved.

import type { Lane } from "../../../platform/base/lane.ts";
import type { StoredLine } from "../lines/line.ts";
import { recordMs } from "../lines/record-time.ts";
import type { Position } from "../types.ts";
import type { DuplicatesBudget } from "./duplicates-budget.ts";
import { HashSet64 } from "./hash-set.ts";

const generationMs = 30 * 60_000;

/** What is to be in the stream's position, in the transaction of the lines counted so far. */
type DuplicatesPosition = Pick<Position, "duplicatesFrom" | "watermarkMs">;

interface Scalars extends DuplicatesPosition {
  /** The watermark when each generation began. */
  readonly sinceMs: readonly [previous: number, current: number];
}

/** What `discard` needs in order to take a rotation back. */
interface Rotation {
  /** Hashes in the journal at the time. */
  readonly journal: number;
  readonly retired: HashSet64;
}

/**
 * The memory of one stream, of one epoch of it. For each line `add`, after each frame `endFrame`.
 *
 * At start, where the stream has a position: give the position to the constructor, read the frames
 * from `duplicatesFrom[0]` up to and including the position's `sequence` again, `remember` each
 * line, and then call `restored`. Where it has none, call nothing. A stream that was made anew, or
 * that lost its tail, gets an object of its own.
 *
 * After a failed commit, `discard` takes out what came since the last commit: the stream need not
 * be read again for that. Memory for it: 8 bytes a line that is not committed, and a third
 * generation while the end of the first is not committed.
 *
 * A generation ends with the frame in which the newest `recordMs` (the watermark, which never goes
 * back) enters another half hour of the clock, or in which the budget has no room. So what is
 * a duplicate depends on the frames and the budget, never on how they fall into batches.
 */
export class Duplicates {
  readonly #budget: DuplicatesBudget;
  readonly #lane: Lane;
  #current = new HashSet64();
  #previous = new HashSet64();
  /** As of the end of the last frame. */
  #scalars: Scalars;
  #watermarkMs: number;
  /** While restoring: the current generation has not begun yet. */
  #isBeforeCurrent: boolean;

  /** The hashes that were added since the last commit: two words each. */
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

  /** The newest `recordMs` so far, this batch's included; 0: none. */
  get watermarkMs(): number {
    return this.#watermarkMs;
  }

  /** How far back a duplicate would be found now. For a gauge: after a start it is about right. */
  get coveredMs(): number {
    return this.#watermarkMs - this.#scalars.sinceMs[0];
  }

  /** For each line that can be read, in order. True: it is a duplicate. Makes no objects. */
  add(line: StoredLine): boolean {
    const high = line.uuidHashHigh;
    const low = line.uuidHashLow;
    const ms = recordMs(line);
    if (ms > this.#watermarkMs) this.#watermarkMs = ms;
    // What is a duplicate of something in the previous generation goes into the current one too.
    // So a generation holds all of its lines' hashes, as it will when it is made from the stream.
    if (!this.#addToCurrent(high, low)) return true;
    if (2 * this.#journalled === this.#journal.length) this.#growJournal();
    this.#journal[2 * this.#journalled] = high;
    this.#journal[2 * this.#journalled + 1] = low;
    this.#journalled++;
    return this.#previous.has(high, low);
  }

  /** After the last line of each frame, also of one without lines. */
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

  /** At start, for the lines from `duplicatesFrom[0]` up to the position, instead of `add`. */
  remember(line: StoredLine): void {
    const { duplicatesFrom, sinceMs } = this.#scalars;
    if (this.#isBeforeCurrent && line.frame.sequence >= duplicatesFrom[1]) this.#beginCurrent();
    const ms = recordMs(line);
    if (ms < sinceMs[this.#isBeforeCurrent ? 0 : 1]) this.#beganBy(ms);
    this.#addToCurrent(line.uuidHashHigh, line.uuidHashLow);
  }

  /** After the last `remember`. */
  restored(): void {
    if (this.#isBeforeCurrent) this.#beginCurrent();
    this.#committed = this.#scalars;
  }

  /** For the transaction of all lines so far. Only between frames; the next lines may follow. */
  changes(): DuplicatesPosition {
    this.#inFlight = {
      journal: this.#journalled,
      rotations: this.#rotations.length,
      scalars: this.#scalars,
    };
    const { duplicatesFrom, watermarkMs } = this.#scalars;
    return { duplicatesFrom, watermarkMs };
  }

  /** What the last `changes` returned is committed. */
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

  /** Forgets all lines since the last commit, those in flight too: they will come again. */
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

  /** Gives the budget back its bytes; the object is not used after that. */
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

  /** A line that is read again shows when its generation began, at the latest. */
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

/** The half hour of the clock. */
function generationOf(ms: number): number {
  return Math.floor(ms / generationMs);
}
