// The writer of a sink: takes frames from all streams, and writes their events to the target in
// batches, each together with how far the streams are read. One batch is put together while those
// before are being written. Whatever fails, it forgets all it has in memory and goes on from what
// the target has. While another sink has the target, it stands by, and takes over when that one is
// gone.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import { BatchLimit } from "../stream/batch-limit.ts";
import { EventStreams } from "../stream/event-streams.ts";
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
import { writeWithin } from "./write-within.ts";

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
const againMsMin = 100;
const againMsMax = 5_000;
const standbyMs = 500;
const sayAgainMs = 30_000;
/** How long an end waits for the target. */
const closeMsMax = 10_000;
const foreverMs = 2 ** 31 - 1;
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
  readonly #ended = new AbortController();
  readonly #warning: SparseWarning;
  readonly #refusals: SparseWarning;
  readonly #watch: UnreadWatch;
  readonly #limit: BatchLimit;
  /** Ends the wait for more of the batch that is put together. */
  #gathering: AbortController | undefined;
  /** Ends the wait for the persons of a batch. */
  #waiting: AbortController | undefined;
  #running: Promise<void> | undefined;
  #streams: EventStreams | undefined;
  /** Batches that are being written, or that have failed; oldest first. */
  #inFlight: Promise<void>[] = [];
  #fault: string | undefined = "it is starting";
  /** A batch has failed, and none was written since. */
  #hasFailedToWrite = false;
  #openSinceMonotonicMs: number | undefined;
  /** Why it stands by. */
  #standsByFor: string | undefined;
  /** What the log was told last: that it writes, or why it does not. */
  #said: { readonly isWriting: boolean; readonly reason: string } | undefined;
  /** How far the target is for certain. */
  #written = new Map<string, SinkPosition>();

  constructor(options: SinkWriterOptions) {
    this.#options = options;
    const { connection, log } = options;
    this.#warning = new SparseWarning(log, sayAgainMs);
    this.#refusals = new SparseWarning(log, sayAgainMs);
    this.#limit = new BatchLimit(options.limits.eventsMax);
    this.#watch = new UnreadWatch({ connection, written: () => [...this.#written.values()] });
  }

  get framesBytes(): number {
    return this.#streams?.bytesInHand ?? 0;
  }

  start(): void {
    void this.#followConnection();
    void this.#watch.run(this.#ended.signal);
    this.#running = this.#run();
  }

  /**
   * Writes what is in hand and ends. Gives up on a target that does not answer in time: with
   * `until`, when that aborts. Else nothing is being written once it is fulfilled.
   */
  async close(until?: AbortSignal): Promise<void> {
    this.#ended.abort();
    this.#gathering?.abort();
    this.#waiting?.abort();
    this.#streams?.close();
    this.#options.target.giveUpWaiting?.();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, ...(until === undefined ? [] : [until])]);
    const msMax = until === undefined ? closeMsMax : foreverMs;
    await Promise.race([this.#running, pauseUntilAborted(msMax, signal)]);
    over.abort();
  }

  status(nowMs: number): SinkStatus {
    const hasTarget = this.#openSinceMonotonicMs !== undefined;
    const standsByFor = this.#standsByFor;
    if (standsByFor !== undefined)
      return { state: "standing by", reasons: [], hasTarget, standsByFor, streams: [] };
    const readers = this.#streams?.readers ?? [];
    const faults = readers.flatMap(({ name, fault }) =>
      fault === undefined ? [] : [`${name.stream}: ${fault}`],
    );
    const whole = this.#faultNow ?? this.#options.persons?.fault ?? this.#streams?.fault;
    const refusing = this.#refusing;
    const target = this.#options.target.faults ?? [];
    const own = [...faults, ...target, ...(refusing === undefined ? [] : [refusing])];
    const reasons = whole === undefined ? own : [whole, ...own];
    const state = reasons.length === 0 ? "writing" : "hindered";
    return { state, reasons, hasTarget, streams: this.#watch.streams(nowMs) };
  }

  /** That the target opens again says nothing of the batch which it did not take. */
  get #faultNow(): string | undefined {
    const since = this.#openSinceMonotonicMs;
    if (!this.#hasFailedToWrite || since === undefined || this.#inFlight.length > 0)
      return this.#fault;
    return performance.now() - since > forgottenMs ? undefined : this.#fault;
  }

  /** The sink goes on: one project's events must not stop those of others. */
  get #refusing(): string | undefined {
    const { refusedInRow } = this.#options.counts;
    if (refusedInRow <= refusedMax) return undefined;
    return `the target has refused the last ${refusedInRow} events and accepted none: they are put aside, each with the reason`;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    const { counts } = this.#options;
    let pauseMs = againMsMin;
    while (!signal.aborted) {
      const before = counts.commits;
      try {
        await this.#session();
      } catch (error) {
        this.#note(error as Error);
      } finally {
        this.#streams?.close();
      }
      if (this.#standsByFor !== undefined) {
        pauseMs = standbyMs;
      } else {
        pauseMs = counts.commits > before ? againMsMin : Math.min(2 * pauseMs, againMsMax);
      }
      await pauseUntilAborted(pauseMs, signal);
    }
  }

  #note(error: Error): void {
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
      return;
    }
    this.#standsByFor = undefined;
    this.#fault = reason;
    counts.failed();
    if (error instanceof MovedError)
      log.warn({ reason }, "somebody else has written; beginning again from what the target has");
    else this.#sayHindered(reason);
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
    await pauseUntilAborted(forgottenMs, this.#ended.signal);
    const isOver = this.#inFlight.length === 0 && this.#faultNow === undefined;
    if (this.#streams === streams && isOver) this.#sayWriting();
  }

  /** Works until the end, or until everything has to begin anew. Nothing is in flight then. */
  async #session(): Promise<void> {
    const { target, prefix, log, connection, acceptExpired, filter, limits } = this.#options;
    const positions = await target.open();
    if (this.#ended.signal.aborted) return;
    this.#standsByFor = undefined;
    this.#inFlight = [];
    this.#written = new Map(positions.map((one) => [one.stream, one]));
    const places = new Map(positions.map((one) => [one.stream, one]));
    const builder = new BatchBuilder(filter, positions);
    const { lanes } = filter;
    const bytesMax = (batchesAhead + this.#batchesMax) * limits.bytesMax;
    const streams = new EventStreams({
      ...{ connection, prefix, places, bytesMax, acceptExpired },
      ...{ lanes, reader: "sink", words, log },
    });
    this.#streams = streams;
    this.#openSinceMonotonicMs = performance.now();
    if (this.#hasFailedToWrite) {
      void this.#sayWritingOnceForgotten(streams);
    } else {
      this.#fault = undefined;
      this.#sayWriting();
    }
    try {
      while (!this.#ended.signal.aborted) await this.#batch(streams, builder);
    } finally {
      streams.close();
      await Promise.allSettled(this.#inFlight);
    }
    await Promise.all(this.#inFlight);
  }

  /** Puts a batch together while those before are on their way; then writes it. */
  async #batch(streams: EventStreams, builder: BatchBuilder): Promise<void> {
    // Where nothing comes, a write that fails is heard of at once.
    if (!builder.hasWaiting) await Promise.race([streams.ready(), this.#failed()]);
    await this.#gather(streams, builder);
    const batch = builder.isEmpty ? undefined : builder.take();
    const isWhole = batch === undefined || (await this.#hasPersons(batch));
    while (this.#inFlight.length >= this.#batchesMax) await this.#inFlight[0];
    // What is not whole is read again at the next start.
    if (batch === undefined || !isWhole) return;
    const write = this.#write(batch);
    this.#inFlight.push(write);
    // One that has failed stays, and is met before the next one.
    write.then(
      () => this.#inFlight.splice(this.#inFlight.indexOf(write), 1),
      () => {},
    );
  }

  get #batchesMax(): number {
    return this.#options.target.batchesMax ?? 1;
  }

  /** False: the end came first. */
  async #hasPersons(batch: BuiltBatch): Promise<boolean> {
    const { persons } = this.#options;
    if (persons === undefined) return true;
    const waiting = new AbortController();
    this.#waiting = waiting;
    if (this.#ended.signal.aborted) waiting.abort();
    try {
      return await Promise.race([persons.fill(batch, waiting.signal), this.#failed()]);
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
    if (this.#ended.signal.aborted) gathering.abort();
    let isLate = false;
    const end = pauseUntilAborted(ageMsMax, gathering.signal).then(() => {
      isLate = true;
    });
    try {
      while (!isLate && !builder.isFull(limits)) {
        if (!builder.hasWaiting) {
          await Promise.race([streams.ready(), end, this.#failed()]);
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

  /** Never fulfilled: rejects when the write under way does. */
  #failed(): Promise<never> {
    return Promise.all(this.#inFlight).then(() => new Promise<never>(() => {}));
  }

  async #write(batch: BuiltBatch): Promise<void> {
    const { target, counts } = this.#options;
    const sinceMonotonicMs = performance.now();
    const outcome = await writeWithin(this.#limit, target, batch);
    counts.written(batch, outcome, (performance.now() - sinceMonotonicMs) / 1_000);
    for (const position of batch.positions) this.#written.set(position.stream, position);
    this.#hasFailedToWrite = false;
    this.#fault = undefined;
    this.#sayWriting();
    const reason = this.#refusing;
    if (reason !== undefined)
      this.#refusals.warn(
        { reason, target: target.shown },
        "events refused: check the target's table",
      );
    batch.release();
  }

  async #followConnection(): Promise<void> {
    for await (const { type } of this.#options.connection.status()) {
      if (type === "disconnect" || type === "staleConnection") this.#streams?.interrupt();
    }
  }
}
