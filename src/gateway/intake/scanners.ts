// The scanners for bodies that are scanned in the thread pool, and who has them. Projects get
// scanners in turn, whatever they send. A body holds its scanner while it is placed, but not while
// it waits long for acknowledgements of its stream.

import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";
import type { BackgroundScanner } from "../../records/table.ts";
import type { Publisher } from "../publish/port.ts";
import type { Arrival } from "./arrivals.ts";

/** Bodies worked on at a time. The others wait, and count in the budget of bytes in flight. */
const scannersMax = 6;
/**
 * Bodies of one project worked on at a time: one is scanned while another is placed. All bodies of
 * an unknown project count as those of one project.
 */
const ofProjectMax = 2;
/**
 * Slow bodies worked on at a time, one of each project: historical ones, whose frames are stored
 * one after another, and huge ones. One of brackets has a thread of the pool for a second, and a
 * repair takes memory for the body once more.
 */
const slowMax = 3;
const hugeBytesMin = 33_554_432;
/**
 * Bodies for one stream that are begun and not all placed, with a scanner or without. Each may have
 * some frames in memory that the stream has not acknowledged.
 */
const ofStreamMax = scannersMax;
/** Rows of a table: it takes some 1.4 MB. A body of more items is scanned in several passes. */
const tableRows = 16_384;
/** Idle scanners are dropped after this time: their indexes take up to 16 MiB each. */
const scannersIdleMs = 2_000;

interface ScannersOptions {
  readonly createScanner: (rows: number) => BackgroundScanner;
  readonly publisher: Pick<Publisher, "streamOf">;
  readonly monotonicMs: () => number;
}

interface Turn extends QueuedWork {
  readonly arrival: Arrival;
  scanner: BackgroundScanner | undefined;
}

export class Scanners {
  readonly #options: ScannersOptions;
  readonly #queue: FairQueue<Turn>;
  readonly #turns = new Map<Arrival, Turn>();
  /** Bodies that were begun, and have no scanner while they wait for their stream. */
  readonly #resting = new Set<Arrival>();
  #free: BackgroundScanner[] = [];
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: ScannersOptions) {
    this.#options = options;
    this.#queue = new FairQueue({
      slots: scannersMax,
      groupSlots: ofProjectMax,
      // What was begun goes first. Else the first scanner goes to the body that came first, and the
      // other to the shortest: so neither long bodies nor short ones wait for ever.
      rank: ({ arrival }, slots) => {
        if (this.#resting.has(arrival)) return -1;
        return slots === 0 ? 0 : arrival.bytes;
      },
      mayRun: (turn) => this.#mayRun(turn),
      monotonicMs: options.monotonicMs,
    });
  }

  /**
   * A scanner for this body alone, until `rest` or `give`; undefined when none was free until the
   * body's deadline. Rejects when a scanner is needed and cannot be made.
   */
  take(arrival: Arrival): Promise<BackgroundScanner | undefined> {
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        arrival,
        scanner: undefined,
        deadlineMs: arrival.deadlineMs,
        get group() {
          return arrival.projectId ?? "";
        },
        run: () => {
          try {
            turn.scanner = this.#free.pop() ?? this.#options.createScanner(tableRows);
            this.#resting.delete(arrival);
            resolve(turn.scanner);
          } catch (bug) {
            this.#turns.delete(arrival);
            this.#queue.leave(turn);
            reject(bug);
          }
        },
        late: () => {
          this.#turns.delete(arrival);
          resolve(undefined);
        },
      };
      this.#turns.set(arrival, turn);
      this.#queue.add(turn);
    });
  }

  /**
   * Whether a body may keep its scanner, now that its project and lane are known. If not, the
   * caller gives the scanner back.
   */
  keep(arrival: Arrival): boolean {
    return this.#queue.regroup(this.#turns.get(arrival)!);
  }

  /** Gives back the scanner of a body that waits for its stream: it takes one again to go on. */
  rest(arrival: Arrival): void {
    this.give(arrival);
    this.#resting.add(arrival);
  }

  /** Ends the work on a body, and gives back the scanner that it has, if any. */
  give(arrival: Arrival): void {
    this.#resting.delete(arrival);
    const turn = this.#turns.get(arrival);
    if (turn === undefined) return;
    this.#turns.delete(arrival);
    this.#queue.leave(turn);
    if (turn.scanner === undefined) return;
    turn.scanner.finish();
    this.#free.push(turn.scanner);
    this.#idleTimer ??= setTimeout(() => this.#dropFree(), scannersIdleMs).unref();
    this.#idleTimer.refresh();
  }

  #mayRun(turn: Turn): boolean {
    const { arrival } = turn;
    let slow = isSlow(arrival) ? 1 : 0;
    let ofStream = 1;
    const stream = this.#streamOf(arrival);
    for (const other of this.#queue.running) {
      if (other === turn) continue;
      if (slow > 0 && isSlow(other.arrival)) {
        if (other.arrival.projectId === arrival.projectId) return false;
        slow++;
      }
      if (stream !== undefined && this.#streamOf(other.arrival) === stream) ofStream++;
    }
    if (slow > slowMax) return false;
    if (stream === undefined || this.#resting.has(arrival)) return true;
    for (const other of this.#resting) if (this.#streamOf(other) === stream) ofStream++;
    return ofStream <= ofStreamMax;
  }

  #streamOf({ lane, projectId }: Arrival): string | undefined {
    if (lane === undefined || projectId === undefined) return undefined;
    return this.#options.publisher.streamOf(lane, projectId);
  }

  #dropFree(): void {
    this.#idleTimer = undefined;
    for (const scanner of this.#free) scanner.release();
    this.#free = [];
  }
}

function isSlow({ lane, bytes }: Arrival): boolean {
  return lane === "historical" || bytes >= hugeBytesMin;
}
