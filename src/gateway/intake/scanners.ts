// The scanners for bodies that are scanned in the thread pool. Projects get scanners in turn. A
// body holds its scanner until its lines are in frames, but not during a long wait for
// acknowledgements.

import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../../records/table.ts";
import type { Publisher } from "../publish/port.ts";
import type { Arrival } from "./arrivals.ts";
import type { Work } from "./work.ts";

const scannersMax = 6;
const ofStreamMax = 3;
const ofProjectMax = 2;
/** Only one huge body is in progress, because it occupies a pool thread. */
const hugeBytesMin = 33_554_432;
/** Bytes that delay a body in the queue by 1 ms, so that short bodies overtake long bodies. */
const bytesPerMs = 10_000;
/** A table takes 1.4 MB. A body with more items is scanned in passes. */
const tableRows = 16_384;
/** The index of an idle scanner takes up to 16 MiB. */
const scannersIdleMs = 2_000;

interface ScannersOptions {
  readonly createScanner: (rows: number) => BackgroundScanner;
  readonly publisher: Pick<Publisher, "streamOf">;
  readonly monotonicMs: () => number;
}

interface Turn extends QueuedWork {
  readonly arrival: Arrival;
  stream: string | undefined;
  scanner: BackgroundScanner | undefined;
  taken: PromiseWithResolvers<BackgroundScanner | undefined>;
}

export class Scanners {
  readonly #options: ScannersOptions;
  readonly #queue: FairQueue<Turn>;
  readonly #turns = new Map<Arrival, Turn>();
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

  /** The body holds the scanner until `rest` or `give`. Undefined after the body's deadline. */
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

  keep(arrival: Arrival): boolean {
    const turn = this.#turns.get(arrival)!;
    this.#begun.delete(turn);
    turn.stream = this.#streamOf(arrival);
    const fits = this.#queue.regroup(turn);
    if (fits) this.#begun.add(turn);
    return fits;
  }

  /** Releases the scanner of a body that waits for its stream. The body must `take` another. */
  rest(arrival: Arrival): void {
    const turn = this.#turns.get(arrival)!;
    this.#queue.rest(turn);
    this.#freeScanner(turn);
  }

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

const patienceMs = 250;

/**
 * During a long wait, the body releases its scanner, and is scanned again before it continues.
 * Unless the request has failed, the table then has the same rows as before.
 */
export async function awaitRoom(
  work: Work,
  room: Promise<void>,
  { scanners, arrival, firstItem }: { scanners: Scanners; arrival: Arrival; firstItem: number },
): Promise<void> {
  const over = new AbortController();
  try {
    const patience = pauseUntilAborted(patienceMs, over.signal, { ref: false });
    if ((await Promise.race([room.then(() => "room"), patience])) === "room") return;
  } finally {
    over.abort();
  }
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
