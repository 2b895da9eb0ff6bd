// Asks JetStream for each stream about once a second and at each reconnect, because anyone may edit
// a stream while it is in use. The answers decide which requests are refused, what /readyz says,
// and the stream sizes in the metrics. Asks for each stream by name: a list of all streams is
// gathered from every server, and one frozen server would cost the whole answer. Leaves a server
// through which no stream is served.

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
  /** How often each stream is asked for. */
  readonly everyMs?: number;
}

const everyMsDefault = 1_000;
/**
 * With many streams, the idle ones are asked in turn, this many at each interval. A stream that
 * frames are sent to is asked when a frame is sent.
 */
const idleAtOnce = 10;
const askTimeoutMs = 1_000;
/** For this long after an acknowledgement a server counts as serving, whatever it answers. */
const stuckMsMax = 2_000;
/**
 * How long a server must be stuck before another one is tried; by then the other servers have
 * agreed on leaders. Where that does not help, the wait doubles each time, up to `leaveMsMax`.
 */
const leaveMsMin = 5_000;
const leaveMsMax = 60_000;

/**
 * Asks for the streams at once, and then at intervals until it is closed. A question that JetStream
 * does not answer changes nothing of what is known.
 */
export class StreamWatch {
  /**
   * Fulfilled when each stream has been asked for once, whether or not it answered. Events should
   * not be taken before: a stream that was never read, and is made anew, cannot be told from one
   * that went back. Never rejects.
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
   * What stands in the way of storing events now; empty when nothing does. Fulfilled within about a
   * second.
   */
  async check(): Promise<string[]> {
    const { link, monotonicMs } = this.#options;
    if (!link.connected) return ["NATS is not connected"];
    // A stream that acknowledges while it is asked can store, even where the question goes
    // unanswered.
    const sinceMonotonicMs = monotonicMs();
    await this.#askAll();
    const unheard = this.#streams.filter(
      (stream) => stream.unheard !== undefined && stream.state.ackedMonotonicMs < sinceMonotonicMs,
    );
    if (unheard.length === this.#streams.length)
      return [`JetStream does not answer: ${unheard[0]!.unheard}`];
    return this.#streams.flatMap((stream) =>
      unheard.includes(stream) ? stream.faultsUnheard() : stream.faults(),
    );
  }

  /**
   * The sizes as last heard, kept while NATS is away. Only this gateway's own streams are among
   * them, and only those that exist.
   */
  sizes(): readonly StreamSize[] {
    return this.#streams.flatMap(({ size }) => size ?? []);
  }

  /**
   * How many streams' events are refused, because the stream would not keep what a 200 promises, or
   * acknowledges nothing.
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
   * Asks for the streams whose events are refused, since no frame is sent that would have them
   * asked, and for some of all streams in turn.
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
   * Moves to another server when no stream is served through this one. A server that is cut off
   * from its cluster serves no stream, while the others, which this process may reach, go on
   * without it.
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
    log.warn({ server }, "no stream is served through this server: another one is tried");
    this.#stuckSinceMonotonicMs = now;
    this.#leaveMs = Math.min(2 * this.#leaveMs, leaveMsMax);
  }
}
