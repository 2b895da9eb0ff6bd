// The scanners for bodies that are scanned on the thread pool. Projects take turns. A body uses a
// scanner until its lines are in frames, but releases it during a long wait for acknowledgements.

import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../../records/table.ts";
import type { Publisher } from "../publish/port.ts";
import type { Arrival } from "./arrivals.ts";
import type { Work } from "./work.ts";

const scannersMax = 6;
const ofStreamMax = 3;
const ofProjectMax = 2;
/** Only one body of this size is scanned at a time, because it occupies a thread of the pool. */
const hugeBytesMin = 33_554_432;
/** A body is placed 1 ms later in the queue per 10,000 bytes, so that short ones can overtake. */
const bytesPerMs = 10_000;
/** A table of this size takes 1.4 MB. A body with more items is scanned in several passes. */
const tableRows = 16_384;
/** After this time, an idle scanner is freed, because its index takes up to 16 MiB. */
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

  /**
   * Waits for a scanner. The body owns it until `rest` or `give` is called. The result is undefined
   * if the body's deadline has passed.
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
      arrival,
      taken,
      scanner: undefined,
      deadlineMs: arrival.deadlineMs,
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

  /**
   * Releases the scanner of a body that waits for its stream. Before it continues, the body must
   * call `take` again.
   */
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
 * Waits until the stream accepts more frames. During a long wait, the body releases its scanner,
 * and is scanned again afterwards. If the request has not failed, the table then has the same rows
 * as before.
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
