// Detects repeated events, which have the same uuid, name and distinct id. The hashes are only in
// memory. After a start, they are restored by reading a part of the stream again.

import type { Lane } from "../../../platform/base/lane.ts";
import { HashSet64 } from "../../stream/hash-set.ts";
import { recordMs, type StoredLine } from "../lines/line.ts";
import type { Position } from "../types.ts";

const generationMs = 30 * 60_000;

type DuplicatesPosition = Pick<Position, "duplicatesFrom" | "watermarkMs">;

interface Scalars extends DuplicatesPosition {
  readonly sinceMs: readonly [previous: number, current: number];
}

interface Rotation {
  readonly journal: number;
  readonly retired: HashSet64;
}

/**
 * Detects the duplicates of one stream in one epoch.
 *
 * After a start, the caller reads the frames from `duplicatesFrom[0]` to the position again. It
 * calls `remember` for each line. At the end, it calls `restored`.
 */
export class Duplicates {
  readonly #budget: DuplicatesBudget;
  readonly #lane: Lane;
  #current = new HashSet64();
  #previous = new HashSet64();
  #scalars: Scalars;
  #watermarkMs: number;
  #isBeforeCurrent: boolean;

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

  get watermarkMs(): number {
    return this.#watermarkMs;
  }

  get coveredMs(): number {
    return this.#watermarkMs - this.#scalars.sinceMs[0];
  }

  add(line: StoredLine): boolean {
    const high = line.uuidHashHigh;
    const low = line.uuidHashLow;
    const ms = recordMs(line);
    if (ms > this.#watermarkMs) this.#watermarkMs = ms;
    if (!this.#addToCurrent(high, low)) return true;
    if (2 * this.#journalled === this.#journal.length) this.#growJournal();
    this.#journal[2 * this.#journalled] = high;
    this.#journal[2 * this.#journalled + 1] = low;
    this.#journalled++;
    return this.#previous.has(high, low);
  }

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

  remember(line: StoredLine): void {
    const { duplicatesFrom, sinceMs } = this.#scalars;
    if (this.#isBeforeCurrent && line.frame.sequence >= duplicatesFrom[1]) this.#beginCurrent();
    const ms = recordMs(line);
    if (ms < sinceMs[this.#isBeforeCurrent ? 0 : 1]) this.#beganBy(ms);
    this.#addToCurrent(line.uuidHashHigh, line.uuidHashLow);
  }

  restored(): void {
    if (this.#isBeforeCurrent) this.#beginCurrent();
    this.#committed = this.#scalars;
  }

  changes(): DuplicatesPosition {
    this.#inFlight = {
      journal: this.#journalled,
      rotations: this.#rotations.length,
      scalars: this.#scalars,
    };
    const { duplicatesFrom, watermarkMs } = this.#scalars;
    return { duplicatesFrom, watermarkMs };
  }

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

function generationOf(ms: number): number {
  return Math.floor(ms / generationMs);
}

interface DuplicatesBudgetOptions {
  readonly bytesMax: number;
  readonly streams?: readonly { readonly lane: Lane }[];
}

/** Share of the memory for each lane. Imports need less, because they repeat fewer events. */
const partOfLane: Readonly<Record<Lane, number>> = { live: 3 / 4, historical: 1 / 4 };

/**
 * Divides the memory for duplicate detection among the streams. The share of a stream depends only
 * on its lane and on the number of streams, so a rebuild finds the same duplicates.
 */
export class DuplicatesBudget {
  readonly #bytesMax: number;
  readonly #expected: Readonly<Record<Lane, number>>;
  readonly #streams: Record<Lane, number> = { live: 0, historical: 0 };
  #bytes = 0;

  constructor({ bytesMax, streams = [] }: DuplicatesBudgetOptions) {
    this.#bytesMax = bytesMax;
    const live = streams.filter(({ lane }) => lane === "live").length;
    this.#expected = { live, historical: streams.length - live };
  }

  get bytes(): number {
    return this.#bytes;
  }

  addStream(lane: Lane): void {
    this.#streams[lane]++;
  }

  removeStream(lane: Lane): void {
    this.#streams[lane]--;
  }

  count(bytes: number): void {
    this.#bytes += bytes;
  }

  hasRoom(lane: Lane, ownBytes: number, bytes: number): boolean {
    const streams = Math.max(1, this.#expected[lane], this.#streams[lane]);
    return ownBytes + bytes <= (this.#bytesMax * partOfLane[lane]) / streams;
  }
}
