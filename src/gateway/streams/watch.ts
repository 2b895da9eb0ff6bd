// Queries JetStream for each stream about once a second and at each reconnect, because an operator
// may edit a stream while it is in use. The answers determine which requests are refused, the
// reasons in /readyz, and the stream sizes in the metrics. Streams are queried by name: a list of
// all streams is collected from every server, so one frozen server would prevent the whole answer.
// If no stream is served through the connected server, moves to another server.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { Log } from "../../platform/base/log.ts";
import { managerOf } from "../../platform/nats/api.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import type { StreamMetrics, StreamStates } from "../../platform/nats/readiness.ts";
import { fullMessageBytes, type StreamSettings, wantedConfigs } from "./desired.ts";
import { type StreamSize, WatchedStream } from "./watched-stream.ts";

export interface StreamWatchOptions {
  readonly link: Pick<
    NatsLink,
    "connection" | "connected" | "messageBytesMax" | "onChange" | "onDenied" | "tryAnotherServer"
  >;
  readonly settings: StreamSettings;
  readonly streams: StreamStates;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
  /** The query interval in milliseconds. */
  readonly everyMs?: number;
}

const everyMsDefault = 1_000;
/**
 * Number of idle streams that are queried at each interval, in turn. A stream in use is queried
 * when a frame is sent.
 */
const idleAtOnce = 10;
const askTimeoutMs = 1_000;
/**
 * Milliseconds after an acknowledgement for which a server counts as serving, whatever it answers.
 */
const stuckMsMax = 2_000;
/**
 * Milliseconds for which a server must be stuck before another one is tried. By then the other
 * servers have agreed on leaders. If no server serves a stream, the time doubles at each move, up
 * to `leaveMsMax`.
 */
const leaveMsMin = 5_000;
const leaveMsMax = 60_000;

/**
 * Queries the streams at once, and then at intervals until it is closed. A query without an answer
 * does not change the known state.
 */
export class StreamWatch {
  /**
   * Fulfilled when each stream has been queried once, with or without an answer. Events should not
   * be accepted earlier: if a stream that was never read is recreated, it cannot be distinguished
   * from a stream whose sequence decreased. Never rejects.
   */
  readonly askedOnce: Promise<void>;
  readonly #options: StreamWatchOptions;
  readonly #streams: readonly WatchedStream[];
  readonly #timer: NodeJS.Timeout;
  #manager: Promise<JetStreamManager> | undefined;
  #nextIdle = 0;
  #stuckSinceMonotonicMs: number | undefined;
  #leaveMs = leaveMsMin;

  constructor(options: StreamWatchOptions) {
    const { link, everyMs = everyMsDefault } = options;
    this.#options = options;
    this.#streams = this.#watched(everyMs);
    this.#timer = setInterval(() => {
      this.#askSome();
      this.#leaveStuckServer();
    }, everyMs).unref();
    link.onChange((connected) => this.#changed(connected));
    link.onDenied((subject, refusal) => {
      for (const stream of this.#streams) stream.denied(subject, refusal);
    });
    this.askedOnce = this.#askAll();
  }

  /**
   * Returns the reasons why events cannot be stored now; empty if there are none. The answer takes
   * about a second at most.
   */
  async check(): Promise<string[]> {
    const { link, monotonicMs } = this.#options;
    if (!link.connected) return ["NATS is not connected"];
    // A stream that acknowledges during the query can store, even if the query gets no answer.
    const sinceMonotonicMs = monotonicMs();
    await this.#askAll();
    const unanswered = this.#streams.filter(
      (stream) =>
        stream.unanswered !== undefined && stream.state.ackedMonotonicMs < sinceMonotonicMs,
    );
    if (unanswered.length === this.#streams.length)
      return [`JetStream does not answer: ${unanswered[0]!.unanswered}`];
    return this.#streams.flatMap((stream) =>
      unanswered.includes(stream) ? stream.problemsUnanswered() : stream.problems(),
    );
  }

  /**
   * Returns the last reported sizes of this gateway's existing streams, even while NATS is
   * disconnected.
   */
  sizes(): readonly StreamSize[] {
    return this.#streams.flatMap(({ size }) => size ?? []);
  }

  /**
   * Returns the number of streams whose events are refused, because the stream would break what a
   * 200 promises or acknowledges nothing.
   */
  unfit(): number {
    return this.#streams.filter(({ isRefused }) => isRefused).length;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #watched(everyMs: number): WatchedStream[] {
    const { link, settings, streams, metrics, log, monotonicMs } = this.#options;
    return wantedConfigs(settings).map((wanted, index) => {
      const state = streams.all[index]!;
      return new WatchedStream({
        ...{ wanted, state, metrics, log, monotonicMs },
        labels: { lane: state.lane, partition: String(index % settings.partitions) },
        manager: () => this.#managerNow(),
        atomicBatches: settings.atomicBatches,
        messageBytes: () => fullMessageBytes(settings.frameBytesMax, link.messageBytesMax),
        askEveryMs: 2 * everyMs,
      });
    });
  }

  #managerNow(): Promise<JetStreamManager> {
    this.#manager ??= managerOf(this.#options.link.connection, { timeoutMs: askTimeoutMs });
    return this.#manager;
  }

  #changed(connected: boolean): void {
    this.#stuckSinceMonotonicMs = undefined;
    if (!connected) return;
    for (const stream of this.#streams) stream.interrupted();
    void this.#askAll();
  }

  async #askAll(): Promise<void> {
    if (this.#options.link.connected)
      await Promise.all(this.#streams.map((stream) => stream.ask()));
  }

  /**
   * Queries the streams whose events are refused, because no frame is sent that would trigger a
   * query. Also queries some of all streams in turn.
   */
  #askSome(): void {
    const { link, monotonicMs } = this.#options;
    if (!link.connected) return;
    const now = monotonicMs();
    const streams = this.#streams;
    for (const stream of streams)
      if (stream.isRefused && now >= stream.state.askMonotonicMs) void stream.ask();
    for (let count = Math.min(idleAtOnce, streams.length); count > 0; count--) {
      this.#nextIdle = (this.#nextIdle + 1) % streams.length;
      void streams[this.#nextIdle]!.ask();
    }
  }

  /**
   * Moves to another server if no stream is served through this one. A server that is cut off from
   * its cluster serves no stream, while the rest of the cluster does, and this process may reach
   * it.
   */
  #leaveStuckServer(): void {
    const { link, log, monotonicMs } = this.#options;
    const now = monotonicMs();
    const isServed = this.#streams.some(
      ({ isStuck, state }) => !isStuck || now - state.ackedMonotonicMs < stuckMsMax,
    );
    if (isServed || !link.connected) {
      this.#stuckSinceMonotonicMs = undefined;
      if (isServed) this.#leaveMs = leaveMsMin;
      return;
    }
    this.#stuckSinceMonotonicMs ??= now;
    if (now - this.#stuckSinceMonotonicMs < this.#leaveMs || !link.tryAnotherServer()) return;
    const server = link.connection.getServer();
    log.warn({ server }, "no stream is served through this NATS server: trying another one");
    this.#stuckSinceMonotonicMs = now;
    this.#leaveMs = Math.min(2 * this.#leaveMs, leaveMsMax);
  }
}
