// The writer of a sink: builds batches from the events of the streams and writes each to the
// target, together with the positions of the streams. While another sink has the target, this one
// is the standby, and takes over when the other one is gone.

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
  /** How long the first event of a batch waits for others. */
  readonly ageMsMax: number;
}

export interface SinkWriterOptions {
  readonly connection: NatsConnection;
  /** The first part of the stream names. */
  readonly prefix: string;
  /** The caller closes it. */
  readonly target: SinkTarget;
  /** Adds the persons of events; undefined: events get no persons. */
  readonly persons?: EventPersons | undefined;
  readonly filter: SinkFilter;
  readonly limits: WriterLimits;
  /** Continues after messages that have left a stream unread. */
  readonly acceptExpired: boolean;
  readonly counts: SinkCounts;
  readonly log: Log;
}

export interface SinkStatus {
  readonly state: "starting" | "standing by" | "writing" | "hindered";
  /** Why nothing is being written; empty: no problem. */
  readonly reasons: readonly string[];
  readonly hasTarget: boolean;
  /** The holder of the target, while this sink stands by. */
  readonly standsByFor?: string;
  /** The unread part of each stream, by the last known state of the target; empty on standby. */
  readonly streams: readonly UnreadStream[];
}

/** In addition to the batches being written, one is being built, and two are read ahead. */
const batchesAhead = 3;
const stepEvents = 2_000;
const stepBytes = 2_097_152;
const pauseMsMax = 5_000;
const standbyMs = 500;
const sayAgainMs = 30_000;
/** After this time with nothing to write, the reason of a failed write is outdated. */
const idleMs = 10_000;
/** If more events in a row are refused, a wrong table is likelier than wrong events. */
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
  /** The builder of the current session. */
  #builder: BatchBuilder | undefined;
  #fault: string | undefined = "it is starting";
  /** A batch has failed, and none was written since. */
  #hasFailedToWrite = false;
  #openSinceMonotonicMs: number | undefined;
  #streams: EventStreams | undefined;
  /** Why the sink stands by. */
  #standsByFor: string | undefined;
  /** The state that was last logged. */
  #logged: { readonly isWriting: boolean; readonly reason: string } | undefined;
  /** The positions of the target at the last `open`, advanced by the batches since. */
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
   * Writes the current batches and ends. Gives up on a target that does not answer in time, or when
   * `until` aborts. Otherwise no write is running once it is fulfilled.
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

  /** The committed positions: later messages must not leave the stream. */
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

  /** Reopening the target successfully does not mean that it accepts the failed batch. */
  get #faultNow(): string | undefined {
    const since = this.#openSinceMonotonicMs;
    if (!this.#hasFailedToWrite || since === undefined || this.#session.writes > 0)
      return this.#fault;
    return performance.now() - since > idleMs ? undefined : this.#fault;
  }

  /** Only a warning: one project's events must not stop those of others. */
  get #refusing(): string[] {
    const { refusedInRow } = this.#options.counts;
    if (refusedInRow <= refusedMax) return [];
    return [
      `the target has refused the last ${refusedInRow} events and accepted none: they are rejected, each with the reason`,
    ];
  }

  /** Returns the pause before the next session; undefined: the default. */
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

  /** Logs each reason once. */
  #logHindered(reason: string): void {
    const { shown: target } = this.#options.target;
    if (this.#logged?.isWriting === false && this.#logged.reason === reason) return;
    if (this.#warning.warn({ reason, target }, "writing failed; retrying until it succeeds"))
      this.#logged = { isWriting: false, reason };
  }

  /** Logged once after each problem. */
  #logWriting(): void {
    const { log, target } = this.#options;
    if (this.#logged?.isWriting === true) return;
    this.#logged = { isWriting: true, reason: "" };
    log.info({ target: target.shown }, "writing events");
  }

  /** The open target counts as a success only if no events arrive that could show it. */
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

  /** Builds a batch while the previous ones are being written; then writes it. */
  async #batch(streams: EventStreams): Promise<boolean> {
    const session = this.#session;
    const builder = this.#builder!;
    // If nothing arrives, a failing write must still be noticed at once.
    if (!builder.hasWaiting) await Promise.race([streams.ready(), session.failed()]);
    await this.#gather(streams, builder);
    const batch = builder.isEmpty ? undefined : builder.take();
    const isWhole = batch === undefined || (await this.#hasPersons(batch));
    await session.room(this.#options.target.batchesMax ?? 1);
    // An incomplete batch is dropped and read again at the next start.
    if (batch !== undefined && isWhole) session.write(this.#write(batch));
    return true;
  }

  /** Adds the persons to the batch. False: closing came first. */
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
        // Yields to the event loop.
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
