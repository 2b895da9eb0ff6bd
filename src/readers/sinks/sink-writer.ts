// The writer of a sink: puts the events of the streams into batches and writes each to the target,
// together with how far the streams are read. While another sink has the target, it is the standby,
// and takes over when that one is gone.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import { BatchLimit } from "../stream/batch-limit.ts";
import type { EventStreams } from "../stream/event-streams.ts";
import type { Place } from "../stream/resume.ts";
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
  /** What the names of the streams begin with. */
  readonly prefix: string;
  /** It stays the caller's to close. */
  readonly target: SinkTarget;
  /** Undefined: nobody asks for the persons of events. */
  readonly persons?: EventPersons | undefined;
  readonly filter: SinkFilter;
  readonly limits: WriterLimits;
  /** Goes on behind messages that have left a stream unread. */
  readonly acceptExpired: boolean;
  readonly counts: SinkCounts;
  readonly log: Log;
}

export interface SinkStatus {
  readonly state: "starting" | "standing by" | "writing" | "hindered";
  /** Why nothing is being written; empty when all is well. */
  readonly reasons: readonly string[];
  readonly hasTarget: boolean;
  /** Who has the target, while this one stands by. */
  readonly standsByFor?: string;
  /** As far as was known of the target last; empty on standby. */
  readonly streams: readonly UnreadStream[];
}

/** Beside those on their way, one batch is being put together, and two are read ahead. */
const batchesAhead = 3;
const stepEvents = 2_000;
const stepBytes = 2_097_152;
const pauseMsMax = 5_000;
const standbyMs = 500;
const sayAgainMs = 30_000;
/** After so long with nothing to write, why a write failed says nothing any more. */
const forgottenMs = 10_000;
/** With more refused in a row, a wrong table is likelier than wrong events. */
const refusedMax = 100;
const words = {
  wayOut: "`penstock sink` with --accept-expired goes on",
  stays: "what they brought into the target stays there",
  twice: () => "where the target tells events by their uuid, none is there twice",
};

export class SinkWriter {
  readonly #options: SinkWriterOptions;
  readonly #session: Session;
  readonly #warning: SparseWarning;
  readonly #refusals: SparseWarning;
  readonly #watch: UnreadWatch;
  readonly #limit: BatchLimit;
  /** Ends the wait for more of the batch that is put together. */
  #gathering: AbortController | undefined;
  /** Ends the wait for the persons of a batch. */
  #waiting: AbortController | undefined;
  /** Those of the present session. */
  #builder: BatchBuilder | undefined;
  #fault: string | undefined = "it is starting";
  /** A batch has failed, and none was written since. */
  #hasFailedToWrite = false;
  #openSinceMonotonicMs: number | undefined;
  #streams: EventStreams | undefined;
  /** Why it stands by. */
  #standsByFor: string | undefined;
  /** What the log was told last: that it writes, or why it does not. */
  #said: { readonly isWriting: boolean; readonly reason: string } | undefined;
  /** How far the target was at the last `open`, or with the batches since. */
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
   * Writes what is in hand and ends. Gives up on a target that does not answer in time: with
   * `until`, when that aborts. Else nothing is being written once it is fulfilled.
   */
  async close(until?: AbortSignal): Promise<void> {
    const closed = this.#session.close({ until });
    this.#gathering?.abort();
    this.#waiting?.abort();
    this.#options.target.giveUpWaiting?.();
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

  /** How far each stream is committed: what is after that must not leave it. */
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

  /** That the target opens again says nothing of the batch which it did not take. */
  get #faultNow(): string | undefined {
    const since = this.#openSinceMonotonicMs;
    if (!this.#hasFailedToWrite || since === undefined || this.#session.writes > 0)
      return this.#fault;
    return performance.now() - since > forgottenMs ? undefined : this.#fault;
  }

  /** The sink goes on: one project's events must not stop those of others. */
  get #refusing(): string[] {
    const { refusedInRow } = this.#options.counts;
    if (refusedInRow <= refusedMax) return [];
    return [
      `the target has refused the last ${refusedInRow} events and accepted none: they are put aside, each with the reason`,
    ];
  }

  /** Returns the pause before the next session; undefined: as usual. */
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
      this.#said = undefined;
      return standbyMs;
    }
    this.#standsByFor = undefined;
    this.#fault = reason;
    counts.failed();
    if (error instanceof MovedError)
      log.warn({ reason }, "somebody else has written; beginning again from what the target has");
    else this.#sayHindered(reason);
    return undefined;
  }

  /** Once, until it is another reason or has passed. */
  #sayHindered(reason: string): void {
    const { shown: target } = this.#options.target;
    if (this.#said?.isWriting === false && this.#said.reason === reason) return;
    if (this.#warning.warn({ reason, target }, "writing failed; trying again until it succeeds"))
      this.#said = { isWriting: false, reason };
  }

  /** Not again before something else was said. */
  #sayWriting(): void {
    const { log, target } = this.#options;
    if (this.#said?.isWriting === true) return;
    this.#said = { isWriting: true, reason: "" };
    log.info({ target: target.shown }, "writing events");
  }

  /** That the target is open ends a hindrance only where nothing comes that could show it. */
  async #sayWritingOnceForgotten(streams: EventStreams): Promise<void> {
    await pauseUntilAborted(forgottenMs, this.#session.signal);
    const isOver = this.#session.writes === 0 && this.#faultNow === undefined;
    if (this.#streams === streams && isOver) this.#sayWriting();
  }

  async #open(): Promise<ReadonlyMap<string, Place>> {
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
      void this.#sayWritingOnceForgotten(streams);
    } else {
      this.#fault = undefined;
      this.#sayWriting();
    }
  }

  /** Puts a batch together while those before are on their way; then writes it. */
  async #batch(streams: EventStreams): Promise<boolean> {
    const session = this.#session;
    const builder = this.#builder!;
    // If nothing arrives, a write that fails is noticed at once.
    if (!builder.hasWaiting) await Promise.race([streams.ready(), session.failed()]);
    await this.#gather(streams, builder);
    const batch = builder.isEmpty ? undefined : builder.take();
    const isWhole = batch === undefined || (await this.#hasPersons(batch));
    await session.room(this.#options.target.batchesMax ?? 1);
    // What is not whole is read again at the next start.
    if (batch !== undefined && isWhole) session.write(this.#write(batch));
    return true;
  }

  /** False: the end came first. */
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
        // Others have the event loop in between.
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
    this.#sayWriting();
    const reason = this.#refusing;
    if (reason.length > 0)
      this.#refusals.warn(
        { reason: reason.join("; "), target: target.shown },
        "events refused: check the target's table",
      );
    batch.release();
  }
}
