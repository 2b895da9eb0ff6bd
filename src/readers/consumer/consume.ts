// The entry point of the npm package. A consumer delivers every frame of all streams at least once,
// and the frames of each stream in order. It reports every possible loss of events.

import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { Lane } from "../../platform/base/lane.ts";
import { atMost, pauseUntilAborted } from "../../platform/base/retry.ts";
import { managerOf } from "../../platform/nats/api.ts";
import { lanes as allLanes, traceHeader } from "../../platform/nats/names.ts";
import { findStreams, type StreamName } from "../stream/stored-stream.ts";
import { checkedOptions } from "./checked-options.ts";
import { DeferredAcks } from "./deferred-acks.ts";
import { frameEvents, UuidWindow } from "./frame-events.ts";
import { StreamConsumer, type TakenFrame } from "./stream-consumer.ts";
import type { ConsumeOptions, EventConsumer, Frame, Notice } from "./types.ts";

export {
  ConsumeError,
  type ConsumeOptions,
  type DeduplicationOptions,
  type EventConsumer,
  type EventKind,
  type Frame,
  type Notice,
  type NoticeType,
  type StoredEvent,
} from "./types.ts";

const questionMs = 5_000;
const lookAgainMs = 2_000;
const reconnectMs = 1_000;
const pingMs = 5_000;
const stopMs = 30_000;
const stopLookMs = 20;

/**
 * Returns a reader of the stored events. Throws a ConsumeError if an option is invalid.
 *
 * The iteration ends with a ConsumeError if a retry cannot help. If `onNotice` throws an error, the
 * iteration ends with this error.
 */
export function consume(options: ConsumeOptions): EventConsumer {
  return new Consumption(options);
}

class Consumption implements EventConsumer {
  readonly #options: ConsumeOptions;
  readonly #lanes: readonly Lane[];
  readonly #projects: ReadonlySet<string> | undefined;
  readonly #window: UuidWindow;
  readonly #deferred = new DeferredAcks();
  readonly #readers = new Map<string, StreamConsumer>();
  readonly #ended = new AbortController();
  readonly #isClosed: Promise<void>;
  #connection: NatsConnection | undefined;
  #waiting: (() => void)[] = [];
  #failure: { readonly error: unknown } | undefined;
  #stopping: Promise<void> | undefined;
  #isStopped = false;
  #turn = 0;
  #said = "";

  constructor(options: ConsumeOptions) {
    const { projects } = checkedOptions(options);
    // The ids are made unique, because the server refuses a consumer that lists a subject twice.
    this.#options = { ...options, projects: projects && [...new Set(projects)] };
    this.#lanes = options.lanes ?? allLanes;
    this.#projects = options.projects && new Set(options.projects);
    const { maxUuids = 200_000, windowMs = 600_000 } = options.deduplication ?? {};
    const monotonicMs = () => performance.now();
    this.#window = new UuidWindow({ maxUuids, windowMs, monotonicMs });
    this.#isClosed = this.#run();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Frame, undefined>> {
    for (;;) {
      if (this.#failure !== undefined) {
        await this.stop({ timeoutMs: 0 });
        throw this.#failure.error;
      }
      if (this.#isStopped) return { done: true, value: undefined };
      const value = this.#take();
      if (value !== undefined) return { done: false, value };
      if (this.#failure === undefined)
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async return(): Promise<IteratorResult<Frame, undefined>> {
    await this.stop({ timeoutMs: 0 });
    return { done: true, value: undefined };
  }

  stop({ timeoutMs = stopMs }: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#end(timeoutMs);
    return this.#stopping;
  }

  async #end(timeoutMs: number): Promise<void> {
    this.#isStopped = true;
    const readers = [...this.#readers.values()];
    for (const reader of readers) reader.close();
    this.#wake();
    const untilMs = performance.now() + timeoutMs;
    while (readers.some(({ out }) => out > 0) && performance.now() < untilMs)
      await pauseUntilAborted(stopLookMs, AbortSignal.timeout(stopLookMs));
    this.#ended.abort();
    await leave(this.#connection);
    await this.#isClosed;
  }

  #take(): Frame | undefined {
    const readers = [...this.#readers.values()];
    for (let nth = 0; nth < readers.length; nth++) {
      const reader = readers[(nth + this.#turn) % readers.length]!;
      for (let taken = reader.take(); taken !== undefined; taken = reader.take()) {
        if (taken.isRepeat) {
          taken.ack();
          continue;
        }
        const frame = this.#frame(reader.name, taken);
        if (this.#failure !== undefined) return undefined;
        if (frame.events.length > 0) {
          this.#turn += nth + 1;
          return frame;
        }
        taken.ack();
      }
    }
    return undefined;
  }

  #frame({ stream, lane, partition }: StreamName, { held, ack, nak, working }: TakenFrame): Frame {
    const { sequence, message, deliveries, id, isWhole } = held;
    const [projects, window] = [this.#projects, this.#window];
    const found = frameEvents(message.data, { projects, window, frame: id, isWhole });
    for (const lines of found.unreadable)
      this.#notify({ type: "unreadable_line", stream, sequence, ...lines });
    const { events, lines, duplicates, duplicatesOf } = found;
    this.#deferred.deliver(id, duplicatesOf);
    return {
      stream,
      lane,
      partition,
      sequence,
      events,
      lines,
      duplicates,
      ack,
      nak,
      working,
      storedAt: new Date(Number(message.timestampNanos / 1_000_000n)),
      redelivered: message.redelivered || deliveries > 1,
      traceparent: message.headers?.get(traceHeader) || undefined,
    };
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      try {
        await this.#connected();
      } catch (error) {
        this.#notifyOnce({ type: "disconnected", reason: (error as Error).message });
      }
      if (!signal.aborted) await pauseUntilAborted(reconnectMs, signal);
    }
  }

  async #connected(): Promise<void> {
    const { nats, durable, ackWaitMs = 30_000 } = this.#options;
    const given = typeof nats === "function" ? await this.#unlessEnded(nats) : nats;
    if (this.#ended.signal.aborted) return;
    const own: ConnectionOptions = { pingInterval: pingMs, name: `@penstock/consumer ${durable}` };
    const connection = await connect({ ...own, ...given, reconnect: false });
    if (this.#ended.signal.aborted) return await leave(connection);
    this.#connection = connection;
    this.#notifyOnce({ type: "connected", server: connection.getServer() });
    const keeping = setInterval(() => {
      for (const reader of this.#readers.values()) reader.reportWorking();
    }, ackWaitMs / 3);
    try {
      const closed = connection.closed();
      await Promise.race([closed, this.#lookForEver(connection)]);
      const error = await closed;
      if (!this.#ended.signal.aborted) {
        const reason = error instanceof Error ? error.message : "the connection was closed";
        this.#notifyOnce({ type: "disconnected", reason });
      }
    } finally {
      clearInterval(keeping);
      for (const reader of this.#readers.values()) reader.interrupt();
      await connection.close();
    }
  }

  async #unlessEnded<Given>(ask: () => Given | Promise<Given>): Promise<Given | undefined> {
    const { signal } = this.#ended;
    if (signal.aborted) return undefined;
    let end = () => {};
    // Node 20 does not support Promise.withResolvers.
    const ended = new Promise<undefined>((resolve) => {
      end = () => resolve(undefined);
      signal.addEventListener("abort", end, { once: true });
    });
    try {
      return await Promise.race([ask(), ended]);
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  async #lookForEver(connection: NatsConnection): Promise<void> {
    const { signal } = this.#ended;
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    const reading = new Set<StreamConsumer>();
    while (!signal.aborted && !connection.isClosed()) {
      try {
        const { prefix = "penstock" } = this.#options;
        const found = await findStreams(manager, prefix);
        for (const name of found.filter(({ lane }) => this.#lanes.includes(lane)))
          if (!this.#readers.has(name.stream) && !this.#isStopped)
            this.#readers.set(name.stream, this.#reader(name, prefix));
      } catch (error) {
        if (!connection.isClosed()) {
          const reason = `cannot list the streams: ${(error as Error).message}`;
          this.#notifyOnce({ type: "trouble", stream: undefined, reason });
        }
      }
      for (const reader of this.#readers.values()) {
        if (reading.has(reader)) await reader.look();
        else void reader.run({ connection, manager });
        reading.add(reader);
      }
      await pauseUntilAborted(lookAgainMs, signal);
    }
  }

  #reader(name: StreamName, prefix: string): StreamConsumer {
    const { durable, projects, maxAckPending = 64, ackWaitMs = 30_000 } = this.#options;
    const { processingTimeoutMs = 300_000, maxBytes = 67_108_864 } = this.#options;
    return new StreamConsumer({
      name,
      prefix,
      durable,
      projects,
      maxAckPending,
      ackWaitMs,
      processingTimeoutMs,
      bytesMax: () => maxBytes / this.#readers.size,
      deferred: this.#deferred,
      isAwaited: () => this.#waiting.length > 0,
      notify: (notice) => this.#notify(notice),
      fail: (error) => this.#fail(error),
      onReady: () => this.#wake(),
    });
  }

  #notifyOnce(notice: Notice): void {
    const words = noticeText(notice);
    if (words === this.#said) return;
    this.#said = words;
    this.#notify(notice);
  }

  #notify(notice: Notice): void {
    const { onNotice = printNotice } = this.#options;
    try {
      const result: unknown = onNotice(notice);
      // The rejection is handled, because an unhandled rejection would end the process.
      if (result instanceof Promise) result.catch((error: unknown) => this.#fail(error));
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

function printNotice(notice: Notice): void {
  if (notice.type !== "connected") console.warn(`@penstock/consumer: ${noticeText(notice)}`);
}

async function leave(connection: NatsConnection | undefined): Promise<void> {
  if (connection === undefined || connection.isClosed()) return;
  await atMost(
    reconnectMs,
    connection.flush().catch(() => {}),
  );
  await connection.close();
}

function noticeText(notice: Notice): string {
  switch (notice.type) {
    case "connected":
      return `connected to ${notice.server}`;
    case "disconnected":
      return `NATS is unreachable, retrying: ${notice.reason}`;
    case "consumer_created":
      return `${notice.stream} has no consumer of this name yet: reading starts at message ${notice.sequence}`;
    case "consumer_recreated":
      return `the consumer of ${notice.stream} was deleted and is created again: reading continues at message ${notice.sequence}`;
    case "stream_missing":
      return `${notice.stream} does not exist; waiting for it`;
    case "stream_recreated":
      return `${notice.stream} was recreated: it had been read up to message ${notice.lastRead}; reading continues at ${notice.sequence}`;
    case "stream_truncated":
      return `${notice.stream} has lost messages that were read: it had been read up to message ${notice.lastRead}; reading continues at ${notice.from}`;
    case "messages_expired":
      return `messages ${notice.from} to ${notice.to} left ${notice.stream} before all of them were read`;
    case "unreadable_line":
      return `line ${notice.line} of message ${notice.sequence} of ${notice.stream} is not an event: ${notice.reason}${notice.lines > 1 ? ` (and ${notice.lines - 1} more lines of this message)` : ""}`;
    case "processing_timed_out":
      return `message ${notice.sequence} of ${notice.stream} was not acknowledged in time and is delivered again`;
    case "trouble":
      return `${notice.stream ?? "NATS"}: ${notice.reason}; retrying`;
  }
}
