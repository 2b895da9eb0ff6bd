// The main loop of the effects and the sinks. It builds a batch while the previous batches are
// being written. After a failure, it discards everything in memory and continues from the positions
// of the target.

import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { TooSlowError } from "../../platform/base/store-error.ts";
import { EventStreams, type EventStreamsOptions, type ReadPosition } from "./event-streams.ts";
import type { StreamReader } from "./stream-reader.ts";

interface SessionTarget {
  /** Loads the state of the target. Returns the positions by stream name. */
  open(): Promise<ReadonlyMap<string, ReadPosition>>;
  opened(streams: EventStreams): void;
  /** Builds the next batch and passes its write to `Session.write`. Returns false at the end. */
  batch(streams: EventStreams): Promise<boolean>;
  /**
   * Handles a failure. Returns the pause before the next session in ms, or undefined for the
   * default pause. Rejects if no further session may start.
   */
  failed(error: Error): Promise<number | undefined>;
}

export interface SessionOptions extends Omit<EventStreamsOptions, "positions"> {
  readonly target: SessionTarget;
  readonly limit: BatchLimit;
  readonly pauseMsMax: number;
}

const pauseMsMin = 100;
const closeMsMax = 10_000;
const foreverMs = 2 ** 31 - 1;

export class Session {
  readonly #options: SessionOptions;
  readonly #ended = new AbortController();
  readonly signal: AbortSignal = this.#ended.signal;
  #running: Promise<void> | undefined;
  #streams: EventStreams | undefined;
  #writes: Promise<void>[] = [];
  #commits = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get commits(): number {
    return this.#commits;
  }

  get writes(): number {
    return this.#writes.length;
  }

  get readers(): readonly StreamReader[] {
    return this.#streams?.readers ?? [];
  }

  get framesBytes(): number {
    return this.#streams?.bytesInHand ?? 0;
  }

  /**
   * Returns the reasons why nothing is read or written. The array is empty if there is no problem.
   * If `own` is given, it is the first reason.
   */
  reasons(own: string | undefined): string[] {
    const whole = own ?? this.#streams?.fault;
    const faults = this.readers.flatMap(({ name, fault }) =>
      fault === undefined ? [] : [`${name.stream}: ${fault}`],
    );
    return whole === undefined ? faults : [whole, ...faults];
  }

  run(): Promise<void> {
    void this.#followConnection();
    this.#running = this.#runSessions();
    return this.#running;
  }

  /** Waits for the current batches and for `alongside`, at most 10 s or until `until` aborts. */
  async close({ alongside, until }: CloseOptions = {}): Promise<void> {
    this.#ended.abort();
    this.#streams?.close();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, ...(until === undefined ? [] : [until])]);
    const late = pauseUntilAborted(until === undefined ? closeMsMax : foreverMs, signal);
    await Promise.race([Promise.all([this.#running?.catch(() => {}), alongside]), late]);
    over.abort();
  }

  /** Adds a running write. If the write fails, the session ends. */
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

  async room(writesMax: number): Promise<void> {
    while (this.#writes.length >= writesMax) await this.#writes[0];
  }

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
      // If a write has failed, its error is thrown instead, because it caused the later errors.
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

const patience = 16;
const failuresMin = 2;

/**
 * Adapts the maximum number of events in a transaction. If a transaction is too slow or fails, the
 * limit is halved, because a retry with the same number would fail again. After 16 successful
 * transactions, the limit is doubled.
 */
export class BatchLimit {
  readonly #most: number;
  events: number;
  #succeeded = 0;
  #tried = 0;
  #failed = 0;

  constructor(most: number) {
    this.#most = most;
    this.events = most;
  }

  /**
   * Runs a write. If it rejects with a TooSlowError, halves the limit and mentions this in the
   * error. `what` is the noun for the transactions in the error.
   */
  async within<Result>(
    events: number,
    what: string,
    write: () => Promise<Result>,
  ): Promise<Result> {
    this.#tried = events;
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof TooSlowError)) throw error;
      this.#tooSlow(events);
      const less = `at most ${this.events} events, or one message`;
      throw new TooSlowError(`${error.message}. The next ${what} have ${less}`, {
        cause: error,
      });
    }
  }

  #tooSlow(events: number): void {
    this.events = Math.max(1, Math.floor(Math.min(events, this.events) / 2));
    this.#tried = 0;
    this.#succeeded = 0;
  }

  failed(): void {
    if (this.#tried > 0 && ++this.#failed >= failuresMin) this.#tooSlow(this.#tried);
    this.#tried = 0;
  }

  succeeded(): void {
    this.#tried = 0;
    this.#failed = 0;
    if (this.events === this.#most || ++this.#succeeded < patience) return;
    this.events = Math.min(this.#most, 2 * this.events);
    this.#succeeded = 0;
  }
}
