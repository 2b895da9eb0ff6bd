// The current state of one stream: whether its events are rejected, which reasons /readyz reports,
// and its size. The queries are answered by the leader of the stream. This class does not change
// the stream.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import type { Log } from "../../platform/base/log.ts";
import {
  apiCodes,
  bytesMaxOf,
  isApiError,
  isFromLeader,
  nanosPerMs,
} from "../../platform/nats/api.ts";
import {
  noteOutage,
  refuseSilent,
  type StreamMetrics,
  type StreamState,
} from "../../platform/nats/readiness.ts";
import type { NatsRefusedError } from "../../platform/nats/sign-in.ts";
import { takesAtomicBatches } from "../../platform/nats/versions.ts";
import { brokenPromises, loweredLimits, type WantedConfig } from "./desired.ts";
import { type Before, type Certainty, StreamHistory } from "./history.ts";

export interface StreamSize {
  readonly labels: { readonly lane: Lane; readonly partition: string };
  readonly bytes: number;
  readonly bytesMax: number;
}

interface WatchedStreamOptions {
  readonly wanted: WantedConfig;
  readonly labels: StreamSize["labels"];
  readonly state: StreamState;
  readonly manager: () => Promise<JetStreamManager>;
  readonly atomicBatches: boolean;
  readonly messageBytes: () => number;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
  readonly askEveryMs: number;
}

interface Asked extends Before {
  readonly monotonicMs: number;
}

const missingMsMax = 1_000;
const repeatsSequences =
  "it assigned sequences twice without a restart of its server; nats-server 2.10 does this on a full disk, and then stores nothing: " +
  "free some disk space. Penstock restarts an embedded nats-server; restart an external nats-server yourself";

export class WatchedStream {
  readonly #options: WatchedStreamOptions;
  readonly state: StreamState;
  readonly #history: StreamHistory;
  readonly #silence: StreamSilence;
  readonly #room: StreamRoom;
  size: StreamSize | undefined;
  #problems: readonly string[] = [];
  unanswered: string | undefined;
  #missingSinceMonotonicMs: number | undefined;
  isStuck = false;
  #asking: Promise<void> | undefined;

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

  get isRefused(): boolean {
    return (this.state.refusal ?? this.state.silence) !== undefined;
  }

  denied(subject: string, { reason, fix }: Pick<NatsRefusedError, "reason" | "fix">): void {
    const [own = ""] = this.#options.wanted.subjects;
    if (subject.startsWith(own.replace("*", "")))
      this.state.denial = `stream ${this.name} cannot be written: ${reason}: ${fix}`;
  }

  problems(): string[] {
    return [...this.#problems, ...this.#history.problems()];
  }

  problemsUnanswered(): string[] {
    return [`stream ${this.name} does not answer: ${this.unanswered}`, ...this.#history.problems()];
  }

  interrupted(): void {
    this.#silence.forget();
    this.#history.interrupted();
  }

  ask(): Promise<void> {
    const { state } = this;
    const monotonicMs = this.#options.monotonicMs();
    const { sequence, regression } = state;
    state.askMonotonicMs = monotonicMs + this.#options.askEveryMs;
    this.#asking ??= this.#query({ sequence, regression, monotonicMs }).finally(() => {
      this.#asking = undefined;
      // If the stream lost events during the query, the answer may be from before the loss. So the
      // stream is queried again.
      if (state.regression !== undefined && state.regression !== regression) void this.ask();
    });
    return this.#asking;
  }

  async #query(asked: Asked): Promise<void> {
    try {
      const info = await (await this.#options.manager()).streams.info(this.name);
      this.unanswered = undefined;
      this.#missingSinceMonotonicMs = undefined;
      const isLed = isFromLeader(info);
      this.isStuck = !isLed || !hasQuorum(info);
      if (isLed) this.#read(info, asked);
      else {
        this.#history.interrupted();
        this.#problems = [`stream ${this.name} has no leader`];
      }
    } catch (error) {
      const isMissing = isApiError(error, apiCodes.streamNotFound);
      this.isStuck = !isMissing;
      if (isMissing) this.#notFound();
      else this.unanswered = (error as Error).message;
    }
  }

  #notFound(): void {
    const monotonicMs = this.#options.monotonicMs();
    this.unanswered = undefined;
    this.#history.interrupted();
    this.#missingSinceMonotonicMs ??= monotonicMs;
    this.size = undefined;
    this.state.reading = undefined;
    this.#problems = [`stream ${this.name} is missing`];
    if (monotonicMs - this.#missingSinceMonotonicMs >= missingMsMax)
      this.#refuse("it is missing: restart the gateway, which creates it");
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
    else if (certainty === "broken") this.#refuse(repeatsSequences);
    else if (certainty === "sure") this.#accept();
    state.messageBytesMax =
      config.max_msg_size > 0 ? config.max_msg_size : Number.POSITIVE_INFINITY;
    state.takesAtomicBatches = this.#options.atomicBatches && takesAtomicBatches(config);
    const domain: unknown = Reflect.get(info, "domain");
    state.domain = typeof domain === "string" ? domain : "";
    const bytesMax = bytesMaxOf(config);
    const { bytes } = info.state;
    this.size = { labels, bytes, bytesMax };
    state.reading = {
      created: String(info.created),
      firstSequence: info.state.first_seq,
      lastSequence: info.state.last_seq,
      deleted: info.state.num_deleted ?? 0,
      bytes,
      bytesMax,
    };
    this.#problems = [
      ...this.#problemsOf(certainty, broken),
      ...this.#room.read({ bytes, bytesMax, messageBytes }),
      ...this.#silence.read(info, asked.monotonicMs),
    ];
    // While no frame is sent, no acknowledgement can show that the stream stores events again. So
    // this check uses the answer to the query.
    const isBack = !this.isRefused && !this.isStuck && this.#problems.length === 0;
    const { outageSinceMonotonicMs: since } = state;
    if (isBack && since !== undefined && since <= asked.monotonicMs)
      state.outageSinceMonotonicMs = undefined;
  }

  #problemsOf(certainty: Certainty, broken: string): string[] {
    const { name } = this;
    const problems: string[] = [];
    if (certainty === "unsure")
      problems.push(
        `stream ${name} assigned a sequence twice, and the gateway has not checked yet which messages it still has`,
      );
    if (certainty === "broken")
      problems.push(
        `stream ${name} cannot guarantee that acknowledged events stay stored: ${repeatsSequences}`,
      );
    if (broken !== "")
      problems.push(
        `stream ${name} cannot guarantee that acknowledged events stay stored: ${broken}`,
      );
    return problems;
  }

  #refuse(why: string): void {
    const { state } = this;
    const detail = `Stream ${state.name} cannot guarantee that acknowledged events stay stored: ${why}`;
    if (state.refusal?.detail === detail) return;
    state.refusal = { code: "unavailable", detail };
    noteOutage(state, this.#options.monotonicMs());
    this.#options.log.error(
      { stream: state.name, reason: why },
      "stream cannot guarantee that acknowledged events stay stored: the gateway rejects its events",
    );
  }

  #accept(): void {
    const { state } = this;
    if (state.refusal === undefined) return;
    state.refusal = undefined;
    this.#options.log.info(
      { stream: state.name },
      "stream can store events safely again: the gateway accepts its events",
    );
  }
}

interface StreamRoomOptions {
  readonly state: StreamState;
  readonly log: Pick<Log, "info" | "warn">;
}

interface Fill {
  readonly bytes: number;
  readonly bytesMax: number;
  readonly messageBytes: number;
}

/** When this part of a full stream is free again, it accepts events. */
const freePart = 1 / 64;

const streamIsFull =
  "stream full: requests that do not fit get 503 store_full. Raise " +
  "PENSTOCK_STREAM_BYTES_MAX and restart, or purge the messages that all readers have read " +
  '("When a stream is full" in docs/guides/operations.md)';
const serverIsFull =
  "NATS storage full, although the stream is below its own limit: requests get 503 store_full. " +
  "Check the disk, max_file_store and the limits of the account; `penstock doctor` shows which limit is reached";

class StreamRoom {
  readonly #options: StreamRoomOptions;
  #logged: "stream_full" | "server_full" | undefined;

  constructor(options: StreamRoomOptions) {
    this.#options = options;
  }

  read(fill: Fill): string[] {
    const { bytes, bytesMax, messageBytes } = fill;
    const isFull = bytes + messageBytes > bytesMax;
    if (this.#logged !== undefined) this.#logRoom(fill);
    else if (isFull) this.#logFull("stream_full", fill);
    else if (this.#options.state.isServerFull) this.#logFull("server_full", fill);
    const { name } = this.#options.state;
    return isFull ? [`stream ${name} is full: ${bytes} of ${bytesMax} bytes`] : [];
  }

  #logFull(why: "stream_full" | "server_full", { bytes, bytesMax }: Fill): void {
    const { state, log } = this.#options;
    const limit = Number.isFinite(bytesMax) ? { bytes_max: bytesMax } : {};
    log.warn(
      { stream: state.name, bytes, ...limit },
      why === "stream_full" ? streamIsFull : serverIsFull,
    );
    this.#logged = why;
  }

  #logRoom({ bytes, bytesMax, messageBytes }: Fill): void {
    const { state, log } = this.#options;
    const isTight = bytes > 0 && bytes + messageBytes + bytesMax * freePart > bytesMax;
    if (isTight || state.isServerFull) return;
    this.#logged = undefined;
    log.info(
      { stream: state.name, bytes },
      "stream has room again: the gateway accepts its events",
    );
  }
}

interface StreamSilenceOptions {
  readonly state: StreamState;
  readonly log: Pick<Log, "info" | "error">;
  readonly monotonicMs: () => number;
}

const silentMsMax = 10_000;
const answeredMsMax = 3_000;

class StreamSilence {
  readonly #options: StreamSilenceOptions;
  #loggedUnder: string | undefined;

  constructor(options: StreamSilenceOptions) {
    this.#options = options;
  }

  /**
   * Detects a stream that answers queries but does not acknowledge frames. Examples are a leader
   * without a majority, and nats-server 2.14 or newer after a failed write.
   */
  read(info: StreamInfo, askedMonotonicMs: number): string[] {
    const { state, log, monotonicMs } = this.#options;
    const leader = info.cluster?.leader ?? "";
    if (this.#loggedUnder !== undefined && this.#loggedUnder !== leader) this.forget();
    const now = monotonicMs();
    // The query must have been sent after the silence began. The answer to an earlier query may be
    // older than an acknowledgement.
    const isSilent =
      state.silentMonotonicMs !== undefined &&
      state.silentMonotonicMs <= askedMonotonicMs &&
      now - state.silentMonotonicMs <= silentMsMax;
    const problem =
      state.denial ?? (hasQuorum(info) ? silenceOf(state.name) : noQuorumOf(state.name));
    const detail = `S${problem.slice(1)}`;
    if (isSilent && state.silence?.detail !== detail) {
      const isNews = this.#loggedUnder === undefined || state.silence !== undefined;
      refuseSilent(state, { code: "unavailable", detail }, now);
      if (isNews) log.error({ stream: state.name }, `${problem}: the gateway rejects its events`);
      this.#loggedUnder = leader;
    } else if (this.#loggedUnder !== undefined && state.silence === undefined) {
      this.#loggedUnder = undefined;
      log.info({ stream: state.name }, "stream acknowledges again: the gateway accepts its events");
    }
    return isSilent ? [problem] : [];
  }

  forget(): void {
    const { state } = this.#options;
    this.#loggedUnder = undefined;
    state.silentMonotonicMs = undefined;
    state.silence = undefined;
    state.denial = undefined;
  }
}

function hasQuorum({ cluster }: StreamInfo): boolean {
  const others = cluster?.replicas ?? [];
  // If the leader has never reached a replica, it reports 0 ns as the time since the replica was
  // active.
  const answering = others.filter(
    ({ offline, current, active }) =>
      offline !== true && active < answeredMsMax * nanosPerMs && (current || active > 0),
  ).length;
  return (1 + answering) * 2 > 1 + others.length;
}

function silenceOf(stream: string): string {
  return (
    `stream ${stream} answers requests but acknowledges nothing: after a failed write nats-server 2.14 and newer ` +
    "store nothing until a restart: check the log of nats-server, and free some space on its disk. " +
    "Penstock restarts an embedded nats-server; restart an external nats-server yourself"
  );
}

function noQuorumOf(stream: string): string {
  return (
    `stream ${stream} has no quorum: its leader cannot reach most of the servers with its replicas, ` +
    "and stores nothing until then: check that the servers run and can reach each other"
  );
}
