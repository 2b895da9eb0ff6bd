// Builds batches from the streams and writes them to the target together with the positions. While
// another sink uses the target, this sink is a standby.

import type { Log } from "../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import type { EventStreams } from "../stream/event-streams.ts";
import type { StreamPosition } from "../stream/resume.ts";
import { BatchLimit, Session, type SessionOptions } from "../stream/session.ts";
import { BatchBuilder, type BatchLimits, type BuiltBatch } from "./batch-builder.ts";
import type { EventPersons } from "./persons/event-persons.ts";
import {
  MovedError,
  type SinkFilter,
  type SinkPosition,
  type SinkTarget,
  StandbyError,
  type WriteOutcome,
} from "./sink-target.ts";
import { type UnreadStream, UnreadWatch } from "./unread-watch.ts";

interface WriterLimits extends BatchLimits {
  readonly ageMsMax: number;
}

export interface SinkWriterOptions
  extends Pick<SessionOptions, "connection" | "prefix" | "acceptExpired"> {
  readonly target: SinkTarget;
  readonly persons?: EventPersons | undefined;
  readonly filter: SinkFilter;
  readonly limits: WriterLimits;
  /** Called after each write. A write that failed has no counts. */
  readonly onWrite?: (counts: CommitCounts | undefined) => void;
  readonly log: Log;
}

export interface SinkStatus {
  readonly state: "starting" | "standing by" | "writing" | "hindered";
  readonly reasons: readonly string[];
  readonly hasTarget: boolean;
  readonly standsByFor?: string;
  readonly streams: readonly UnreadStream[];
}

const batchesAhead = 3;
const stepEvents = 2_000;
const stepBytes = 2_097_152;
const pauseMsMax = 5_000;
const standbyMs = 500;
const sayAgainMs = 30_000;
const idleMs = 10_000;
/** If more consecutive events are refused, the cause is probably the table and not the events. */
const refusedMax = 100;
const words = {
  action: "`penstock sink` with --accept-expired continues",
  stays: "their events remain in the target",
  reread: () => "targets that deduplicate by uuid store no event twice",
};

export class SinkWriter {
  readonly #options: SinkWriterOptions;
  readonly #session: Session;
  readonly #warning: SparseWarning;
  readonly #refusals: SparseWarning;
  readonly #watch: UnreadWatch;
  readonly #limit: BatchLimit;
  #gathering: AbortController | undefined;
  #waiting: AbortController | undefined;
  #builder: BatchBuilder | undefined;
  #fault: string | undefined = "it is starting";
  #hasFailedToWrite = false;
  #hasTarget = false;
  #streams: EventStreams | undefined;
  #standsByFor: string | undefined;
  #logged: { readonly isWriting: boolean; readonly reason: string } | undefined;
  #written = new Map<string, SinkPosition>();
  #refusedInRow = 0;

  constructor(options: SinkWriterOptions) {
    this.#options = options;
    const { connection, prefix, target, filter, limits, acceptExpired, log } = options;
    this.#limit = new BatchLimit(limits.eventsMax);
    this.#session = new Session({
      connection,
      prefix,
      acceptExpired,
      lanes: filter.lanes,
      reader: "sink",
      words,
      log,
      limit: this.#limit,
      bytesMax: (batchesAhead + (target.batchesMax ?? 1)) * limits.bytesMax,
      pauseMsMax,
      target: {
        open: () => this.#open(),
        opened: (streams) => this.#opened(streams),
        batch: (streams) => this.#batch(streams),
        failed: async (error) => this.#note(error),
      },
    });
    this.#warning = new SparseWarning(log, sayAgainMs);
    this.#refusals = new SparseWarning(log, sayAgainMs);
    this.#watch = new UnreadWatch(connection, () => this.#committed);
  }

  get framesBytes(): number {
    return this.#session.framesBytes;
  }

  start(): void {
    void this.#watch.run(this.#session.signal);
    void this.#session.run();
  }

  /** Waits for the current batches for at most 10 s, or until `until` aborts. */
  async close(until?: AbortSignal): Promise<void> {
    const closed = this.#session.close({ until });
    this.#gathering?.abort();
    this.#waiting?.abort();
    this.#options.target.abortWaiting?.();
    await closed;
  }

  status(nowMs: number): SinkStatus {
    const hasTarget = this.#hasTarget;
    const standsByFor = this.#standsByFor;
    if (standsByFor !== undefined)
      return { state: "standing by", reasons: [], hasTarget, standsByFor, streams: [] };
    const { target, persons } = this.#options;
    const reasons = this.#session.reasons(this.#fault ?? persons?.fault);
    reasons.push(...(target.faults ?? []), ...this.#refusing);
    const state = reasons.length === 0 ? "writing" : "hindered";
    return { state, reasons, hasTarget, streams: this.#watch.streams(nowMs) };
  }

  /** The committed positions. Streams must keep the messages after these positions. */
  get #committed(): SinkPosition[] {
    const { committed } = this.#options.target;
    const written = [...this.#written.values()];
    if (committed === undefined) return written;
    return written.map(
      (position) =>
        committed.find(
          ({ stream, epoch }) => stream === position.stream && epoch === position.epoch,
        ) ?? { ...position, sequence: 0, trail: [] },
    );
  }

  /**
   * Returns a warning if the target has rejected many events in a row. The sink continues to write,
   * because one project must not stop the others.
   */
  get #refusing(): string[] {
    if (this.#refusedInRow <= refusedMax) return [];
    return [`the target has rejected the last ${this.#refusedInRow} events, each with its reason`];
  }

  #note(error: Error): number | undefined {
    const { log, onWrite } = this.#options;
    const { message: reason } = error;
    this.#hasFailedToWrite ||= this.#hasTarget;
    this.#hasTarget = false;
    if (error instanceof StandbyError) {
      this.#written.clear();
      if (this.#standsByFor !== reason)
        log.info({ reason }, "sink standing by: another sink writes to the target");
      this.#standsByFor = reason;
      this.#logged = undefined;
      return standbyMs;
    }
    this.#standsByFor = undefined;
    this.#fault = reason;
    onWrite?.(undefined);
    if (error instanceof MovedError)
      log.warn(
        { reason },
        "sink restarting from the positions in the target: another program wrote to the target",
      );
    else this.#logHindered(reason);
    return undefined;
  }

  #logHindered(reason: string): void {
    const { shown: target } = this.#options.target;
    if (this.#logged?.isWriting === false && this.#logged.reason === reason) return;
    if (this.#warning.warn({ reason, target }, "sink write failed: retrying until it succeeds"))
      this.#logged = { isWriting: false, reason };
  }

  #succeeded(): void {
    const { log, target } = this.#options;
    this.#hasFailedToWrite = false;
    this.#fault = undefined;
    if (this.#logged?.isWriting === true) return;
    this.#logged = { isWriting: true, reason: "" };
    log.info({ target: target.shown }, "sink writing events");
  }

  /**
   * Reports success if nothing is left to write. After a failed write, this is needed because the
   * batch may have been stored anyway, and then no other write follows.
   */
  async #succeedOnceIdle(streams: EventStreams): Promise<void> {
    const { signal } = this.#session;
    await pauseUntilAborted(idleMs, signal);
    const isOpen = this.#hasTarget && this.#streams === streams && !signal.aborted;
    if (isOpen && this.#session.writes === 0) this.#succeeded();
  }

  async #open(): Promise<ReadonlyMap<string, StreamPosition>> {
    const { target, filter } = this.#options;
    const positions = await target.open();
    this.#standsByFor = undefined;
    this.#written = new Map(positions.map((one) => [one.stream, one]));
    this.#builder = new BatchBuilder(filter, positions);
    return new Map(this.#written);
  }

  #opened(streams: EventStreams): void {
    this.#hasTarget = true;
    this.#streams = streams;
    if (this.#hasFailedToWrite) void this.#succeedOnceIdle(streams);
    else this.#succeeded();
  }

  async #batch(streams: EventStreams): Promise<boolean> {
    const session = this.#session;
    const builder = this.#builder!;
    if (!builder.hasWaiting) await Promise.race([streams.ready(), session.failed()]);
    await this.#gather(streams, builder);
    const batch = builder.isEmpty ? undefined : builder.take();
    const isWhole = batch === undefined || (await this.#hasPersons(batch));
    await session.room(this.#options.target.batchesMax ?? 1);
    // If the persons are not complete, the batch is dropped and read again at the next start.
    if (batch !== undefined && isWhole) session.write(this.#write(batch));
    return true;
  }

  async #hasPersons(batch: BuiltBatch): Promise<boolean> {
    const { persons } = this.#options;
    if (persons === undefined) return true;
    const waiting = new AbortController();
    this.#waiting = waiting;
    if (this.#session.signal.aborted) waiting.abort();
    try {
      return await Promise.race([persons.fill(batch, waiting.signal), this.#session.failed()]);
    } finally {
      waiting.abort();
    }
  }

  async #gather(streams: EventStreams, builder: BatchBuilder): Promise<void> {
    const { bytesMax, ageMsMax } = this.#options.limits;
    const eventsMax = this.#limit.events;
    const limits = { eventsMax, bytesMax };
    const gathering = new AbortController();
    this.#gathering = gathering;
    if (this.#session.signal.aborted) gathering.abort();
    let isLate = false;
    const end = pauseUntilAborted(ageMsMax, gathering.signal).then(() => {
      isLate = true;
    });
    try {
      while (!isLate && !builder.isFull(limits)) {
        if (!builder.hasWaiting) {
          await Promise.race([streams.ready(), end, this.#session.failed()]);
          const room = [eventsMax - builder.lines, bytesMax - builder.bytes] as const;
          builder.put(streams.take(Math.min(stepEvents, room[0]), Math.min(stepBytes, room[1])));
        }
        await builder.addWaiting(limits);
        await new Promise(setImmediate);
      }
    } finally {
      gathering.abort();
    }
  }

  async #write(batch: BuiltBatch): Promise<void> {
    const { target, onWrite } = this.#options;
    const sinceMonotonicMs = performance.now();
    const events = batch.events.length + batch.rejected.length;
    const outcome = await this.#limit.within(events, "batches", () => target.write(batch));
    if (outcome.written + outcome.duplicates > 0) this.#refusedInRow = 0;
    else this.#refusedInRow += outcome.refused;
    onWrite?.({ batch, outcome, seconds: (performance.now() - sinceMonotonicMs) / 1_000 });
    for (const position of batch.positions) this.#written.set(position.stream, position);
    this.#succeeded();
    const reason = this.#refusing;
    if (reason.length > 0)
      this.#refusals.warn(
        { reason: reason.join("; "), target: target.shown },
        "sink target accepts no events: check its table",
      );
    batch.release();
  }
}

export interface CommitCounts {
  readonly batch: BuiltBatch;
  readonly outcome: WriteOutcome;
  readonly seconds: number;
}
