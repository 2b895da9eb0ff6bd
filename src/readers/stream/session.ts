// The main loop of effects and sinks: opens the target, reads on from the target's positions, and
// writes batch after batch. One batch is built while earlier ones are being written. After any
// failure the session ends, everything in memory is dropped, and after a pause the next session
// starts from what the target has. JetStream is the journal.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Lane } from "../../platform/base/lane.ts";
import type { Log } from "../../platform/base/log.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import type { BatchLimit } from "./batch-limit.ts";
import { EventStreams, type ReadPosition } from "./event-streams.ts";
import type { ReaderName } from "./pull.ts";
import type { ReaderWords } from "./resume.ts";
import type { StreamReader } from "./stream-reader.ts";

interface SessionTarget {
  /** Starts from the state of the target. Returns how far each stream was read, by its name. */
  open(): Promise<ReadonlyMap<string, ReadPosition>>;
  /** Called when the target is open and the streams are being read. */
  opened(streams: EventStreams): void;
  /**
   * Builds the next batch and hands its write to the session. The positions are committed with the
   * batch. False: the session ends, and the next one starts at once.
   */
  batch(streams: EventStreams): Promise<boolean>;
  /**
   * Called when the session has failed and no write is running. Returns the pause in ms; undefined:
   * the default, which grows until a batch is written. Rejects if no other session may start.
   */
  failed(error: Error): Promise<number | undefined>;
}

interface SessionOptions {
  readonly connection: NatsConnection;
  /** The first part of the stream names. */
  readonly prefix: string;
  readonly target: SessionTarget;
  /** Receives each written batch and each failed session. */
  readonly limit: BatchLimit;
  /** Maximum bytes of frames in hand. */
  readonly bytesMax: number;
  /** Continues after messages that have left a stream unread. */
  readonly acceptExpired: boolean;
  /** The lanes to read. Default: both. */
  readonly lanes?: readonly Lane[] | undefined;
  readonly reader: ReaderName;
  readonly words: ReaderWords;
  readonly log: Log;
  /** Maximum pause between two sessions. */
  readonly pauseMsMax: number;
}

const pauseMsMin = 100;
/** How long closing waits for the target. */
const closeMsMax = 10_000;
const foreverMs = 2 ** 31 - 1;

export class Session {
  readonly #options: SessionOptions;
  readonly #ended = new AbortController();
  #running: Promise<void> | undefined;
  #streams: EventStreams | undefined;
  /** Running writes, and a failed one; oldest first. */
  #writes: Promise<void>[] = [];
  #commits = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Aborts when closing begins. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Number of batches written since the start. */
  get commits(): number {
    return this.#commits;
  }

  /** Number of batches that are being written. */
  get writes(): number {
    return this.#writes.length;
  }

  get readers(): readonly StreamReader[] {
    return this.#streams?.readers ?? [];
  }

  get framesBytes(): number {
    return this.#streams?.bytesInHand ?? 0;
  }

  /** Why nothing is being read or written, `own` first; empty: no problem. */
  reasons(own: string | undefined): string[] {
    const whole = own ?? this.#streams?.fault;
    const faults = this.readers.flatMap(({ name, fault }) =>
      fault === undefined ? [] : [`${name.stream}: ${fault}`],
    );
    return whole === undefined ? faults : [whole, ...faults];
  }

  /** Runs until `close`. Rejects if the target allows no other session. */
  run(): Promise<void> {
    void this.#followConnection();
    this.#running = this.#runSessions();
    return this.#running;
  }

  /**
   * Ends after the current batches are written. Frames that were only read are read again at the
   * next start. Also waits for `alongside`. Gives up on a target that does not answer after 10 s,
   * or when `until` aborts.
   */
  async close({ alongside, until }: CloseOptions = {}): Promise<void> {
    this.#ended.abort();
    this.#streams?.close();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, ...(until === undefined ? [] : [until])]);
    const late = pauseUntilAborted(until === undefined ? closeMsMax : foreverMs, signal);
    await Promise.race([Promise.all([this.#running?.catch(() => {}), alongside]), late]);
    over.abort();
  }

  /** Hands over the write of a batch. A failed write ends the session. */
  write(write: Promise<void>): void {
    const writes = this.#writes;
    writes.push(write);
    write.then(
      () => {
        writes.splice(writes.indexOf(write), 1);
        this.#commits++;
        this.#options.limit.succeeded();
      },
      () => {},
    );
  }

  /** Fulfilled when fewer than `writesMax` writes are running. Rejects when one has failed. */
  async room(writesMax: number): Promise<void> {
    while (this.#writes.length >= writesMax) await this.#writes[0];
  }

  /** Rejects when a running write does; never fulfilled. */
  failed(): Promise<never> {
    return Promise.all(this.#writes).then(() => new Promise<never>(() => {}));
  }

  async #runSessions(): Promise<void> {
    const { target, limit, pauseMsMax } = this.#options;
    let pauseMs = pauseMsMin;
    while (!this.signal.aborted) {
      const before = this.#commits;
      let ownPauseMs: number | undefined;
      try {
        await this.#session();
        continue;
      } catch (error) {
        limit.failed();
        ownPauseMs = await target.failed(error as Error);
      } finally {
        this.#streams?.close();
      }
      const usualMs = this.#commits > before ? pauseMsMin : Math.min(2 * pauseMs, pauseMsMax);
      pauseMs = ownPauseMs ?? usualMs;
      await pauseUntilAborted(pauseMs, this.signal);
    }
  }

  async #session(): Promise<void> {
    const { target, limit: _, ...reading } = this.#options;
    this.#writes = [];
    const positions = await target.open();
    if (this.signal.aborted) return;
    const streams = new EventStreams({ ...reading, positions });
    this.#streams = streams;
    target.opened(streams);
    try {
      while (!this.signal.aborted && (await target.batch(streams)));
    } finally {
      streams.close();
      await Promise.allSettled(this.#writes);
      // A failed write is the cause of the other errors, so it is reported first.
      await Promise.all(this.#writes);
    }
  }

  async #followConnection(): Promise<void> {
    for await (const { type } of this.#options.connection.status()) {
      if (type === "disconnect" || type === "staleConnection") this.#streams?.interrupt();
    }
  }
}

interface CloseOptions {
  readonly alongside?: Promise<unknown>;
  readonly until?: AbortSignal | undefined;
}
