// Queries JetStream about each stream once per second, because an operator may change a stream
// while it is in use. From the answers, the gateway knows which requests to reject, what /readyz
// reports, and the sizes in the metrics.

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
  readonly everyMs?: number;
}

const everyMsDefault = 1_000;
/**
 * The maximum number of idle streams that are queried at the same time. A stream that is in use is
 * queried when frames are sent.
 */
const idleAtOnce = 10;
const askTimeoutMs = 1_000;
const stuckMsMax = 2_000;
/** The time doubles whenever the gateway disconnects from a server that does not respond. */
const leaveMsMin = 5_000;
const leaveMsMax = 60_000;

/** If a query gets no answer, the known state does not change. */
export class StreamWatch {
  /**
   * Fulfilled when each stream has been queried once. Never rejects. No events may be accepted
   * before that, because otherwise a stream that was recreated while the gateway was stopped would
   * look like a stream that lost events.
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

  async check(): Promise<string[]> {
    const { link, monotonicMs } = this.#options;
    if (!link.connected) return ["NATS is not connected"];
    // A stream that acknowledges frames during the query can store events, even if the query gets
    // no answer.
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

  sizes(): readonly StreamSize[] {
    return this.#streams.flatMap(({ size }) => size ?? []);
  }

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
        wanted,
        state,
        metrics,
        log,
        monotonicMs,
        labels: { lane: state.lane, partition: String(index % settings.partitions) },
        manager: () => (this.#manager ??= managerOf(link.connection, { timeoutMs: askTimeoutMs })),
        atomicBatches: settings.atomicBatches,
        messageBytes: () => fullMessageBytes(settings.frameBytesMax, link.messageBytesMax),
        askEveryMs: 2 * everyMs,
      });
    });
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

  /** Queries all rejected streams. No frames are sent to them, so no frame would cause a query. */
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
    log.warn({ server }, "NATS server reaches no stream: the gateway connects to another server");
    this.#stuckSinceMonotonicMs = now;
    this.#leaveMs = Math.min(2 * this.#leaveMs, leaveMsMax);
  }
}
