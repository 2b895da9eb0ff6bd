// The writer of a sink: builds batches from the events of the streams, and writes each batch to the
// target together with the positions of the streams. While another sink has the target, this one is
// the standby. It takes over when the other sink ends.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import { BatchLimit } from "../stream/batch-limit.ts";
import type { EventStreams } from "../stream/event-streams.ts";
import type { StreamPosition } from "../stream/resume.ts";
import { Session } from "../stream/session.ts";
import { BatchBuilder, type BatchLimits, type BuiltBatch } from "./batch-builder.ts";
import type { EventPersons } from "./persons/event-persons.ts";
import type { SinkCounts } from "./sink-counts.ts";
import {
  MovedError,
  type SinkFilter,
  type SinkPosition,
  type SinkTarget,
  StandbyError,
} from "./sink-target.ts";
import { type UnreadStream, UnreadWatch } from "./unread-watch.ts";

interface WriterLimits extends BatchLimits {
  /** Maximum time in ms for which the first event of a batch waits for others. */
  readonly ageMsMax: number;
}

export interface SinkWriterOptions {
  readonly connection: NatsConnection;
  /** First part of the stream names. */
  readonly prefix: string;
  /** Target of the events. The caller closes it. */
  readonly target: SinkTarget;
  /** Adds the persons of events; undefined if events get no persons. */
  readonly persons?: EventPersons | undefined;
  readonly filter: SinkFilter;
  readonly limits: WriterLimits;
  /** Whether to continue after messages that have left a stream unread. */
  readonly acceptExpired: boolean;
  readonly counts: SinkCounts;
  readonly log: Log;
}

export interface SinkStatus {
  readonly state: "starting" | "standing by" | "writing" | "hindered";
  /** Reasons why nothing is being written; empty if there is no problem. */
  readonly reasons: readonly string[];
  readonly hasTarget: boolean;
  /** Holder of the target, while this sink stands by. */
  readonly standsByFor?: string;
  /** Unread part of each stream, by the last known state of the target; empty on standby. */
  readonly streams: readonly UnreadStream[];
}

/**
 * Number of batches in memory in addition to those being written: one is being built, and two are
 * read ahead.
 */
const batchesAhead = 3;
const stepEvents = 2_000;
const stepBytes = 2_097_152;
const pauseMsMax = 5_000;
const standbyMs = 500;
const sayAgainMs = 30_000;
/** Time in ms with nothing to write after which the reason of a failed write is outdated. */
const idleMs = 10_000;
/** Number of refused events in a row above which a wrong table is more likely than wrong events. */
const refusedMax = 100;
const words = {
  action: "`penstock sink` with --accept-expired continues",
  stays: "their events stay in the target",
  reread: () => "a target that recognises events by their uuid stores none of them twice",
};

export class SinkWriter {
  readonly #options: SinkWriterOptions;
  readonly #session: Session;
  readonly #warning: SparseWarning;
  readonly #refusals: SparseWarning;
  readonly #watch: UnreadWatch;
  readonly #limit: BatchLimit;
  /** Ends the wait for more events of the current batch. */
  #gathering: AbortController | undefined;
  /** Ends the wait for the persons of a batch. */
  #waiting: AbortController | undefined;
  /** Builder of the current session. */
  #builder: BatchBuilder | undefined;
  #fault: string | undefined = "it is starting";
  /** Whether a batch has failed and no batch was written since. */
  #hasFailedToWrite = false;
  #openSinceMonotonicMs: number | undefined;
  #streams: EventStreams | undefined;
  /** Reason why the sink stands by; undefined if it does not. */
  #standsByFor: string | undefined;
  /** State that was last logged. */
  #logged: { readonly isWriting: boolean; readonly reason: string } | undefined;
  /** Positions of the target at the last `open`, advanced by the batches since. */
  #written = new Map<string, SinkPosition>();

  constructor(options: SinkWriterOptions) {
    this.#options = options;
    const { connection, prefix, target, filter, limits, acceptExpired, log } = options;
    this.#limit = new BatchLimit(limits.eventsMax);
    this.#session = new Session({
      ...{ connection, prefix, acceptExpired, lanes: filter.lanes, reader: "sink", words, log },
      limit: this.#limit,
      ...{ bytesMax: (batchesAhead + (target.batchesMax ?? 1)) * limits.bytesMax, pauseMsMax },
      target: {
        open: () => this.#open(),
        opened: (streams) => this.#opened(streams),
        batch: (streams) => this.#batch(streams),
        failed: async (error) => this.#note(error),
      },
    });
    this.#warning = new SparseWarning(log, sayAgainMs);
    this.#refusals = new SparseWarning(log, sayAgainMs);
    const written = () => this.#committed;
    this.#watch = new UnreadWatch({ connection, written });
  }

  get framesBytes(): number {
    return this.#session.framesBytes;
  }

  start(): void {
    void this.#watch.run(this.#session.signal);
    void this.#session.run();
  }

  /**
   * Writes the current batches and ends. Waits until `until` aborts at most, or 10 s if `until` is
   * undefined. If the wait was long enough, no write is running when the promise is fulfilled.
   */
  async close(until?: AbortSignal): Promise<void> {
    const closed = this.#session.close({ until });
    this.#gathering?.abort();
    this.#waiting?.abort();
    this.#options.target.abortWaiting?.();
    await closed;
  }

  status(nowMs: number): SinkStatus {
    const hasTarget = this.#openSinceMonotonicMs !== undefined;
    const standsByFor = this.#standsByFor;
    if (standsByFor !== undefined)
      return { state: "standing by", reasons: [], hasTarget, standsByFor, streams: [] };
    const { target, persons } = this.#options;
    const reasons = this.#session.reasons(this.#faultNow ?? persons?.fault);
    reasons.push(...(target.faults ?? []), ...this.#refusing);
    const state = reasons.length === 0 ? "writing" : "hindered";
    return { state, reasons, hasTarget, streams: this.#watch.streams(nowMs) };
  }

  /** Committed positions. Later messages must not leave their stream. */
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
   * Reason of the last failure. A reopened target does not clear it, because the target may still
   * reject the failed batch.
   */
  get #faultNow(): string | undefined {
    const since = this.#openSinceMonotonicMs;
    if (!this.#hasFailedToWrite || since === undefined || this.#session.writes > 0)
      return this.#fault;
    return performance.now() - since > idleMs ? undefined : this.#fault;
  }

  /**
   * Warning about refused events. Writing continues, because one project's events must not stop
   * those of others.
   */
  get #refusing(): string[] {
    const { refusedInRow } = this.#options.counts;
    if (refusedInRow <= refusedMax) return [];
    return [
      `the target has refused the last ${refusedInRow} events and accepted none: they are rejected, each with the reason`,
    ];
  }

  /**
   * Records a failed session. Returns the pause in ms before the next one; undefined for the
   * default.
   */
  #note(error: Error): number | undefined {
    const { log, counts } = this.#options;
    const { message: reason } = error;
    this.#hasFailedToWrite ||= this.#openSinceMonotonicMs !== undefined;
    this.#openSinceMonotonicMs = undefined;
    if (error instanceof StandbyError) {
      this.#written.clear();
      if (this.#standsByFor !== reason)
        log.info({ reason }, "standing by: another sink writes to the target");
      this.#standsByFor = reason;
      this.#logged = undefined;
      return standbyMs;
    }
    this.#standsByFor = undefined;
    this.#fault = reason;
    counts.failed();
    if (error instanceof MovedError)
      log.warn(
        { reason },
        "another program wrote to the target; starting again from its positions",
      );
    else this.#logHindered(reason);
    return undefined;
  }

  /** Logs that writing failed, once for each reason. */
  #logHindered(reason: string): void {
    const { shown: target } = this.#options.target;
    if (this.#logged?.isWriting === false && this.#logged.reason === reason) return;
    if (this.#warning.warn({ reason, target }, "writing failed; retrying until it succeeds"))
      this.#logged = { isWriting: false, reason };
  }

  /** Logs that writing works, once after each problem. */
  #logWriting(): void {
    const { log, target } = this.#options;
    if (this.#logged?.isWriting === true) return;
    this.#logged = { isWriting: true, reason: "" };
    log.info({ target: target.shown }, "writing events");
  }

  /**
   * Logs success if no events have arrived for 10 s. While events may arrive, only a written batch
   * counts as success.
   */
  async #logWritingOnceIdle(streams: EventStreams): Promise<void> {
    await pauseUntilAborted(idleMs, this.#session.signal);
    const isOver = this.#session.writes === 0 && this.#faultNow === undefined;
    if (this.#streams === streams && isOver) this.#logWriting();
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
    this.#openSinceMonotonicMs = performance.now();
    this.#streams = streams;
    if (this.#hasFailedToWrite) {
      void this.#logWritingOnceIdle(streams);
    } else {
      this.#fault = undefined;
      this.#logWriting();
    }
  }

  /** Builds a batch while the previous ones are being written, and then starts its write. */
  async #batch(streams: EventStreams): Promise<boolean> {
    const session = this.#session;
    const builder = this.#builder!;
    // If no event arrives, a failing write must still be noticed at once.
    if (!builder.hasWaiting) await Promise.race([streams.ready(), session.failed()]);
    await this.#gather(streams, builder);
    const batch = builder.isEmpty ? undefined : builder.take();
    const isWhole = batch === undefined || (await this.#hasPersons(batch));
    await session.room(this.#options.target.batchesMax ?? 1);
    // If closing interrupted the wait for persons, the batch is dropped and read again at the next
    // start.
    if (batch !== undefined && isWhole) session.write(this.#write(batch));
    return true;
  }

  /** Adds the persons to the batch. Returns false if the sink closes before they are known. */
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
        // Lets the event loop handle other requests.
        await new Promise(setImmediate);
      }
    } finally {
      gathering.abort();
    }
  }

  async #write(batch: BuiltBatch): Promise<void> {
    const { target, counts } = this.#options;
    const sinceMonotonicMs = performance.now();
    const events = batch.events.length + batch.rejected.length;
    const outcome = await this.#limit.within(events, "batches", () => target.write(batch));
    counts.written(batch, outcome, (performance.now() - sinceMonotonicMs) / 1_000);
    for (const position of batch.positions) this.#written.set(position.stream, position);
    this.#hasFailedToWrite = false;
    this.#fault = undefined;
    this.#logWriting();
    const reason = this.#refusing;
    if (reason.length > 0)
      this.#refusals.warn(
        { reason: reason.join("; "), target: target.shown },
        "events refused: check the target's table",
      );
    batch.release();
  }
}
