// The scanners for bodies that are scanned in the thread pool, and their assignment to bodies.
// Projects get scanners in turn. A body holds its scanner while it is placed, but not during a long
// wait for acknowledgements of its stream. Until it is placed, the body counts against the limits
// of its project and its stream, even without a scanner.

import { setTimeout as delay } from "node:timers/promises";
import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../../records/table.ts";
import type { Publisher } from "../publish/port.ts";
import type { Arrival } from "./arrivals.ts";
import type { Work } from "./work.ts";

/**
 * Maximum number of bodies in progress. Other bodies wait, and count against the budget of bytes in
 * flight.
 */
const scannersMax = 6;
/**
 * Maximum number of bodies per stream that are started and not completely placed, so that a slow
 * stream does not block other streams. Each body may have some frames in memory that the stream has
 * not acknowledged.
 */
const ofStreamMax = 3;
/**
 * Maximum number of bodies per project that are started and not completely placed; fewer than per
 * stream. All bodies of unknown projects count as those of one project.
 */
const ofProjectMax = 2;
/**
 * Minimum bytes of a huge body. Only one huge body is in progress at a time. If it consists of
 * brackets, its scan occupies a pool thread for a second, and a repair doubles its memory.
 */
const hugeBytesMin = 33_554_432;
/**
 * Bytes of a body per millisecond by which it is queued later than it arrived, so that short bodies
 * overtake long ones.
 */
const bytesPerMs = 10_000;
/**
 * Number of rows of a table, which takes some 1.4 MB. A body with more items is scanned in several
 * passes.
 */
const tableRows = 16_384;
/** Milliseconds after which idle scanners are released. Their indexes take up to 16 MiB each. */
const scannersIdleMs = 2_000;

interface ScannersOptions {
  readonly createScanner: (rows: number) => BackgroundScanner;
  readonly publisher: Pick<Publisher, "streamOf">;
  readonly monotonicMs: () => number;
}

interface Turn extends QueuedWork {
  readonly arrival: Arrival;
  /** The name of the body's stream; undefined while the project or the lane is unknown. */
  stream: string | undefined;
  scanner: BackgroundScanner | undefined;
  taken: PromiseWithResolvers<BackgroundScanner | undefined>;
}

export class Scanners {
  readonly #options: ScannersOptions;
  readonly #queue: FairQueue<Turn>;
  readonly #turns = new Map<Arrival, Turn>();
  /** Bodies that were started and are not completely placed. */
  readonly #begun = new Set<Turn>();
  #free: BackgroundScanner[] = [];
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: ScannersOptions) {
    this.#options = options;
    this.#queue = new FairQueue({
      slots: scannersMax,
      groupBegunMax: ofProjectMax,
      rank: (turn) =>
        this.#begun.has(turn)
          ? Number.NEGATIVE_INFINITY
          : turn.deadlineMs + turn.arrival.bytes / bytesPerMs,
      mayRun: (turn) => this.#mayRun(turn),
      monotonicMs: options.monotonicMs,
    });
  }

  /**
   * Returns a scanner for this body alone, until `rest` or `give`; undefined if no scanner was free
   * by the body's deadline. Rejects if a scanner is needed and cannot be created.
   */
  take(arrival: Arrival): Promise<BackgroundScanner | undefined> {
    const taken = Promise.withResolvers<BackgroundScanner | undefined>();
    const known = this.#turns.get(arrival);
    if (known !== undefined) {
      known.taken = taken;
      this.#queue.again(known);
      return taken.promise;
    }
    const turn: Turn = {
      ...{ arrival, taken, scanner: undefined, deadlineMs: arrival.deadlineMs },
      stream: this.#streamOf(arrival),
      get group() {
        return arrival.projectId ?? "";
      },
      run: () => {
        try {
          turn.scanner = this.#free.pop() ?? this.#options.createScanner(tableRows);
          this.#begun.add(turn);
          turn.taken.resolve(turn.scanner);
        } catch (bug) {
          this.give(arrival);
          turn.taken.reject(bug);
        }
      },
      late: () => {
        this.give(arrival);
        turn.taken.resolve(undefined);
      },
    };
    this.#turns.set(arrival, turn);
    this.#queue.add(turn);
    return taken.promise;
  }

  /**
   * Returns whether a body may keep its scanner after its project and lane became known. If not,
   * the caller must return the scanner.
   */
  keep(arrival: Arrival): boolean {
    const turn = this.#turns.get(arrival)!;
    this.#begun.delete(turn);
    turn.stream = this.#streamOf(arrival);
    const fits = this.#queue.regroup(turn);
    if (fits) this.#begun.add(turn);
    return fits;
  }

  /**
   * Releases the scanner of a body that waits for its stream. The body must take a scanner again to
   * continue.
   */
  rest(arrival: Arrival): void {
    const turn = this.#turns.get(arrival)!;
    this.#queue.rest(turn);
    this.#freeScanner(turn);
  }

  /** Ends the work on a body, and releases its scanner, if any. */
  give(arrival: Arrival): void {
    const turn = this.#turns.get(arrival);
    if (turn === undefined) return;
    this.#turns.delete(arrival);
    this.#begun.delete(turn);
    this.#queue.leave(turn);
    this.#freeScanner(turn);
  }

  #freeScanner(turn: Turn): void {
    const { scanner } = turn;
    if (scanner === undefined) return;
    turn.scanner = undefined;
    scanner.finish();
    this.#free.push(scanner);
    this.#idleTimer ??= setTimeout(() => this.#dropFree(), scannersIdleMs).unref();
    this.#idleTimer.refresh();
  }

  #mayRun(turn: Turn): boolean {
    if (isHuge(turn)) for (const other of this.#queue.running) if (isHuge(other)) return false;
    if (turn.stream === undefined || this.#begun.has(turn)) return true;
    let ofStream = 0;
    for (const { stream } of this.#begun) if (stream === turn.stream) ofStream++;
    return ofStream < ofStreamMax;
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

function isHuge({ arrival }: Turn): boolean {
  return arrival.bytes >= hugeBytesMin;
}

/**
 * Maximum wait in milliseconds with a scanner. To scan a body again takes less: some milliseconds
 * per 10 MB.
 */
const patienceMs = 250;

interface AwaitRoomOptions {
  readonly scanners: Scanners;
  readonly arrival: Arrival;
  /** The index of the first item in the scanner's table. */
  readonly firstItem: number;
}

/**
 * Waits for `room`. If the request has not failed by then, its scanner's table has the same rows as
 * before. Rejects only if a scanner cannot be created or is misused.
 */
export async function awaitRoom(
  work: Work,
  room: Promise<void>,
  { scanners, arrival, firstItem }: AwaitRoomOptions,
): Promise<void> {
  if (await comesSoon(room)) return;
  scanners.rest(arrival);
  await room;
  if (work.pending.failed) return;
  const scanner = await scanners.take(arrival);
  if (scanner === undefined) {
    work.pending.fail("overloaded");
    return;
  }
  work.scanner = scanner;
  if (work.pending.failed) return;
  if ((await scanner.scanInBackground(work.body)) !== ScanStatus.Ok)
    work.pending.fail("overloaded");
  while (!work.pending.failed && work.table[Header.FirstItem]! < firstItem)
    await scanner.scanMoreInBackground(work.body);
}

async function comesSoon(room: Promise<void>): Promise<boolean> {
  const over = new AbortController();
  const { signal } = over;
  const late = delay(patienceMs, false, { signal, ref: false }).catch(() => false);
  const isSoon = await Promise.race([room.then(() => true), late]);
  over.abort();
  return isSoon;
}
