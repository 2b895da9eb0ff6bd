// The present state of one stream: whether its events are refused, what /readyz says of it, and its
// size. JetStream is asked for the stream by its name, and the stream's leader answers. Changes no
// stream.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import type { Log } from "../../platform/base/log.ts";
import { apiCodes, bytesMaxOf, isApiError, isFromLeader } from "../../platform/nats/api.ts";
import { takesAtomicBatches } from "../../platform/nats/atomic-batches.ts";
import { noteAway, type StreamMetrics, type StreamState } from "../../platform/nats/readiness.ts";
import type { NatsRefusedError } from "../../platform/nats/sign-in.ts";
import { brokenPromises, loweredLimits, type WantedConfig } from "./desired.ts";
import { type Before, type Certainty, StreamHistory } from "./history.ts";
import { StreamRoom } from "./stream-room.ts";
import { hasQuorum, StreamSilence } from "./stream-silence.ts";

export interface StreamSize {
  readonly labels: { readonly lane: Lane; readonly partition: string };
  readonly bytes: number;
  /** Infinity without a limit. */
  readonly bytesMax: number;
}

interface WatchedStreamOptions {
  readonly wanted: WantedConfig;
  readonly labels: StreamSize["labels"];
  readonly state: StreamState;
  readonly manager: () => Promise<JetStreamManager>;
  /** Whether frames may be sent to it in atomic batches, where it takes them. */
  readonly atomicBatches: boolean;
  /** How many bytes the stream must take in one message. */
  readonly messageBytes: () => number;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
  /**
   * A frame that is sent has the stream asked for, once this has passed since the last question.
   */
  readonly askEveryMs: number;
}

/** When a question was asked, and what was known then. */
interface Asked extends Before {
  readonly monotonicMs: number;
}

/**
 * How long a stream may be missing before its events are refused: after a reconnect it may be about
 * to be made. Until then its frames wait.
 */
const missingMsMax = 1_000;
const givesTwice =
  "it gave sequences twice under a server that went on running, as nats-server 2.10 does on a full disk, and then keeps nothing: " +
  "make room on the disk. Penstock restarts an embedded nats-server; if it is your own, restart nats-server";

export class WatchedStream {
  readonly #options: WatchedStreamOptions;
  readonly state: StreamState;
  readonly #history: StreamHistory;
  readonly #silence: StreamSilence;
  readonly #room: StreamRoom;
  #size: StreamSize | undefined;
  /** What keeps the stream from storing events, as last heard. */
  #faults: readonly string[] = [];
  #unheard: string | undefined;
  #missingSinceMonotonicMs: number | undefined;
  #isStuck = false;
  #asking: Promise<void> | undefined;

  /**
   * Sets `state.ask` and `state.askMonotonicMs`, by which the publisher has the stream asked for.
   */
  constructor(options: WatchedStreamOptions) {
    const { state, monotonicMs } = options;
    this.#options = options;
    this.state = state;
    this.#history = new StreamHistory(options);
    this.#silence = new StreamSilence(options);
    this.#room = new StreamRoom(options);
    state.askMonotonicMs = monotonicMs();
    state.ask = () => void this.ask();
  }

  get name(): string {
    return this.#options.wanted.name;
  }

  /** Undefined while the stream is missing, and until its size is first heard. */
  get size(): StreamSize | undefined {
    return this.#size;
  }

  /** Why the last question got no answer; undefined when it got one. */
  get unheard(): string | undefined {
    return this.#unheard;
  }

  /**
   * Whether, as seen from the server that was asked, nobody answers for the stream, it has no
   * leader, or its leader does not hear from a majority.
   */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  get isRefused(): boolean {
    return (this.state.refusal ?? this.state.silence) !== undefined;
  }

  /** NATS did not let this process publish to that subject. */
  denied(subject: string, { reason, fix }: Pick<NatsRefusedError, "reason" | "fix">): void {
    const [own = ""] = this.#options.wanted.subjects;
    if (subject.startsWith(own.replace("*", "")))
      this.state.denial = `stream ${this.name} cannot be written: ${reason}: ${fix}`;
  }

  /** What keeps the stream from storing events, as last heard. */
  faults(): string[] {
    return [...this.#faults, ...this.#history.faults()];
  }

  /** What to answer in place of `faults` when the last question got no answer. */
  faultsUnheard(): string[] {
    return [`stream ${this.name} does not answer: ${this.#unheard}`, ...this.#history.faults()];
  }

  /** The connection was lost: its server may have been restarted. */
  interrupted(): void {
    this.#silence.forget();
    this.#history.interrupted();
  }

  /**
   * Asks for the stream, one question at a time: a call during a question waits for that one's
   * answer. Never rejects.
   */
  ask(): Promise<void> {
    const { state } = this;
    const monotonicMs = this.#options.monotonicMs();
    const { sequence, wentBack } = state;
    state.askMonotonicMs = monotonicMs + this.#options.askEveryMs;
    this.#asking ??= this.#hear({ sequence, wentBack, monotonicMs }).finally(() => {
      this.#asking = undefined;
      // The stream was found during the question to have gone back. The answer may be older, so the
      // stream is asked again.
      if (state.wentBack !== undefined && state.wentBack !== wentBack) void this.ask();
    });
    return this.#asking;
  }

  async #hear(asked: Asked): Promise<void> {
    try {
      const info = await (await this.#options.manager()).streams.info(this.name);
      this.#unheard = undefined;
      this.#missingSinceMonotonicMs = undefined;
      const isLed = isFromLeader(info);
      this.#isStuck = !isLed || !hasQuorum(info);
      if (isLed) this.#read(info, asked);
      else {
        this.#history.interrupted();
        this.#faults = [`stream ${this.name} has no leader`];
      }
    } catch (error) {
      const isMissing = isApiError(error, apiCodes.streamNotFound);
      this.#isStuck = !isMissing;
      if (isMissing) this.#notFound();
      else this.#unheard = (error as Error).message;
    }
  }

  #notFound(): void {
    const monotonicMs = this.#options.monotonicMs();
    this.#unheard = undefined;
    this.#history.interrupted();
    this.#missingSinceMonotonicMs ??= monotonicMs;
    this.#size = undefined;
    this.state.reading = undefined;
    this.#faults = [`stream ${this.name} is missing`];
    if (monotonicMs - this.#missingSinceMonotonicMs >= missingMsMax)
      this.#refuse("it is missing: a gateway makes it at its start");
  }

  #read(info: StreamInfo, asked: Asked): void {
    const { state } = this;
    const { wanted, labels } = this.#options;
    const { config } = info;
    const messageBytes = this.#options.messageBytes();
    const broken = [
      ...brokenPromises(wanted, config, messageBytes),
      ...loweredLimits(wanted, config),
    ].join("; ");
    const certainty = this.#history.read(info, asked);
    if (broken !== "") this.#refuse(broken);
    else if (certainty === "broken") this.#refuse(givesTwice);
    else if (certainty === "sure") this.#accept();
    state.messageBytesMax =
      config.max_msg_size > 0 ? config.max_msg_size : Number.POSITIVE_INFINITY;
    state.takesAtomicBatches = this.#options.atomicBatches && takesAtomicBatches(config);
    const domain: unknown = Reflect.get(info, "domain");
    state.domain = typeof domain === "string" ? domain : "";
    const bytesMax = bytesMaxOf(config);
    const { bytes } = info.state;
    this.#size = { labels, bytes, bytesMax };
    state.reading = {
      created: String(info.created),
      firstSequence: info.state.first_seq,
      lastSequence: info.state.last_seq,
      deleted: info.state.num_deleted ?? 0,
      bytes,
      bytesMax,
    };
    this.#faults = [
      ...this.#faultsOf(certainty, broken),
      ...this.#room.read({ bytes, bytesMax, messageBytes }),
      ...this.#silence.read(info, asked.monotonicMs),
    ];
    // While no frame is sent, no acknowledgement can show that the stream stores again.
    const isBack = !this.isRefused && !this.#isStuck && this.#faults.length === 0;
    const { awaySinceMonotonicMs: since } = state;
    if (isBack && since !== undefined && since <= asked.monotonicMs)
      state.awaySinceMonotonicMs = undefined;
  }

  #faultsOf(certainty: Certainty, broken: string): string[] {
    const { name } = this;
    const faults: string[] = [];
    if (certainty === "unsure")
      faults.push(`stream ${name} gave a sequence twice, and has not said what it still has`);
    if (certainty === "broken")
      faults.push(`stream ${name} would not keep what a 200 promises: ${givesTwice}`);
    if (broken !== "") faults.push(`stream ${name} would break what a 200 promises: ${broken}`);
    return faults;
  }

  #refuse(why: string): void {
    const { state } = this;
    const detail = `Stream ${state.name} would not keep what a 200 promises: ${why}`;
    if (state.refusal?.detail === detail) return;
    state.refusal = { code: "unavailable", detail };
    noteAway(state, this.#options.monotonicMs());
    this.#options.log.error(
      { stream: state.name, reason: why },
      "a stream would break what a 200 promises: its events are refused",
    );
  }

  #accept(): void {
    const { state } = this;
    if (state.refusal === undefined) return;
    state.refusal = undefined;
    this.#options.log.info(
      { stream: state.name },
      "a stream is as it should be again: its events are taken",
    );
  }
}
