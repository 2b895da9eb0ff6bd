// What each stream is now, asked of JetStream about once a second and at each reconnect, because
// anyone may edit a stream while it is in use: the verdict on which requests are refused, what
// /readyz says, and the sizes for the scrape. Asks for each stream by name, which its leader
// answers: the list of all would be gathered from every server, and one that is frozen would cost
// the answer. Changes no stream.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../base/log.ts";
import type { Lane } from "../base/types.ts";
import { apiCodes, isApiError, isFromLeader, managerOf, nanosPerMs } from "../nats/api.ts";
import type { NatsLink } from "../nats/link.ts";
import type { StreamMetrics } from "../nats/readiness.ts";
import { refuseSilent, type StreamState, type StreamStates } from "../nats/readiness.ts";
import {
  brokenPromises,
  fullMessageBytes,
  loweredLimits,
  type StreamSettings,
  type WantedConfig,
  wantedConfigs,
} from "./desired.ts";
import { type Before, createStreamHistory, type StreamHistory } from "./history.ts";

export interface StreamWatchOptions {
  readonly link: Pick<
    NatsLink,
    "connection" | "connected" | "messageBytesMax" | "onChange" | "tryAnotherServer"
  >;
  readonly settings: StreamSettings;
  readonly streams: StreamStates;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  /** How often each stream is asked for. */
  readonly everyMs?: number;
}

export interface StreamSize {
  readonly labels: { readonly lane: Lane; readonly partition: string };
  readonly bytes: number;
  /** Infinity without a limit. */
  readonly bytesMax: number;
}

export interface StreamWatch {
  /**
   * What stands in the way of storing events now; empty when nothing does. Answers within about a
   * second.
   */
  check(): Promise<string[]>;
  /** As last heard, kept while NATS is away: of this gateway's own streams those that are there. */
  sizes(): readonly StreamSize[];
  /**
   * Streams whose events are refused because they would not keep what a 200 promises, or
   * acknowledge nothing.
   */
  unfit(): number;
  close(): void;
}

/** What is known of one stream. */
interface Watched {
  readonly wanted: WantedConfig;
  readonly labels: StreamSize["labels"];
  readonly state: StreamState;
  readonly history: StreamHistory;
  size: StreamSize | undefined;
  /** What stands in the way, as last heard from a leader. */
  faults: readonly string[];
  /** Why nothing was heard, the last time. */
  unheard: string | undefined;
  missingAtMs: number | undefined;
  /** Who led it when it was told that it acknowledges nothing, "" for a server alone. */
  silentUnder: string | undefined;
  asking: Promise<void> | undefined;
  /**
   * As seen from the server asked: nobody answers for it, nobody leads it, or who does hears from
   * no majority.
   */
  isStuck: boolean;
}

/** When a question was asked, and what was known then. */
interface Asked extends Before {
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

const everyMsDefault = 1_000;
/**
 * With many streams those that take no events are asked in turn, so many at a time. The others are
 * asked when a frame is sent to them.
 */
const idleAtOnce = 10;
const askTimeoutMs = 1_000;
/**
 * A stream that is not there may be about to be made, after a reconnect: for so long its frames
 * wait.
 */
const missingMsMax = 1_000;
/** How long a stream counts as silent when nobody sends anything that would prove it. */
const silentMsMax = 10_000;
/** Members of a stream answer their leader about once a second. */
const heardMsMax = 3_000;
/** So long after an acknowledgement a server serves, whatever it answers. */
const stuckMsMax = 2_000;
/**
 * How long a server is stuck before another is tried: the others have agreed on leaders by then.
 * Where it does not help, rarer and rarer.
 */
const tryAgainMsMin = 5_000;
const tryAgainMsMax = 60_000;

/**
 * Asks at once, then until closed. What JetStream does not answer leaves what is known as it is.
 */
export function createStreamWatch(options: StreamWatchOptions): StreamWatch {
  const { link, settings, streams, log, nowMs } = options;
  const watched = wantedConfigs(settings).map((wanted, index): Watched => {
    const state = streams.all[index]!;
    return {
      wanted,
      labels: { lane: state.lane, partition: String(index % settings.partitions) },
      state,
      history: createStreamHistory({ ...options, state }),
      size: undefined,
      faults: [],
      unheard: undefined,
      missingAtMs: undefined,
      silentUnder: undefined,
      asking: undefined,
      isStuck: false,
    };
  });
  const everyMs = options.everyMs ?? everyMsDefault;
  let manager: Promise<JetStreamManager> | undefined;
  let nextIdle = 0;
  let stuckSinceMs: number | undefined;
  let tryAgainMs = tryAgainMsMin;

  for (const stream of watched) {
    stream.state.askAtMs = nowMs();
    stream.state.ask = () => void ask(stream);
  }

  function ask(stream: Watched): Promise<void> {
    const { state } = stream;
    const now = nowMs();
    const asked: Asked = { sequence: state.sequence, wentBack: state.wentBack, atMs: now };
    state.askAtMs = now + 2 * everyMs;
    stream.asking ??= hear(stream, asked).finally(() => {
      stream.asking = undefined;
      // Found while the question was under way: so it is asked again.
      if (state.wentBack !== undefined && state.wentBack !== asked.wentBack) void ask(stream);
    });
    return stream.asking;
  }

  async function hear(stream: Watched, asked: Asked): Promise<void> {
    try {
      manager ??= managerOf(link.connection, { timeoutMs: askTimeoutMs });
      const info = await (await manager).streams.info(stream.wanted.name);
      stream.unheard = undefined;
      stream.missingAtMs = undefined;
      const isLed = isFromLeader(info);
      stream.isStuck = !isLed || !hasQuorum(info);
      if (isLed) read(stream, info, asked);
      else {
        // Without a leader a member answers what it has, which may be old.
        stream.history.interrupted();
        stream.faults = [`stream ${stream.wanted.name} has no leader`];
      }
    } catch (error) {
      const isMissing = isApiError(error, apiCodes.streamNotFound);
      stream.isStuck = !isMissing;
      if (isMissing) notFound(stream);
      else stream.unheard = (error as Error).message;
    }
  }

  function notFound(stream: Watched): void {
    stream.unheard = undefined;
    stream.history.interrupted();
    stream.missingAtMs ??= nowMs();
    stream.size = undefined;
    stream.faults = [`stream ${stream.wanted.name} is missing`];
    if (nowMs() - stream.missingAtMs >= missingMsMax)
      refuse(stream, "it is missing: a gateway makes it at its start");
  }

  function read(stream: Watched, info: StreamInfo, asked: Asked): void {
    const { wanted, state, labels } = stream;
    const { config } = info;
    const messageBytes = fullMessageBytes(settings.frameBytesMax, link.messageBytesMax);
    const broken = [
      ...brokenPromises(wanted, config, messageBytes),
      ...loweredLimits(wanted, config),
    ].join("; ");
    const verdict = stream.history.read(info, asked);
    if (broken !== "") refuse(stream, broken);
    else if (verdict === "broken") refuse(stream, givesTwice);
    else if (verdict === "sure") accept(stream);
    state.messageBytesMax =
      config.max_msg_size > 0 ? config.max_msg_size : Number.POSITIVE_INFINITY;
    const domain: unknown = Reflect.get(info, "domain");
    state.domain = typeof domain === "string" ? domain : "";
    const bytesMax = config.max_bytes > 0 ? config.max_bytes : Number.POSITIVE_INFINITY;
    const { bytes } = info.state;
    stream.size = { labels, bytes, bytesMax };
    stream.faults = [
      ...(verdict === "unsure"
        ? [`stream ${wanted.name} gave a sequence twice, and has not said what it still has`]
        : []),
      ...(verdict === "broken"
        ? [`stream ${wanted.name} would not keep what a 200 promises: ${givesTwice}`]
        : []),
      ...(broken === ""
        ? []
        : [`stream ${wanted.name} would break what a 200 promises: ${broken}`]),
      ...(bytes + messageBytes > bytesMax
        ? [`stream ${wanted.name} is full: ${bytes} of ${bytesMax} bytes`]
        : []),
      ...hearSilence(stream, info, asked),
    ];
  }

  /**
   * A nats-server of 2.14 or newer that failed to write to a stream goes on answering questions,
   * and leaves what is published without one.
   */
  function hearSilence(stream: Watched, info: StreamInfo, { atMs }: Asked): string[] {
    const { state } = stream;
    const leader = info.cluster?.leader ?? "";
    // Another server is to be tried anew.
    if (stream.silentUnder !== undefined && stream.silentUnder !== leader) forgetSilence(stream);
    const now = nowMs();
    // An answer to an earlier question may have come before an acknowledgement that is here too.
    const isSilent =
      state.silentAtMs !== undefined &&
      state.silentAtMs <= atMs &&
      now - state.silentAtMs <= silentMsMax;
    const fault = hasQuorum(info) ? silenceOf(state.name) : noQuorumOf(state.name);
    const detail = `S${fault.slice(1)}`;
    // Said once. It goes on, also while nobody sends anything, until an acknowledgement ends it.
    if (isSilent && state.silence?.detail !== detail) {
      const isNews = stream.silentUnder === undefined || state.silence !== undefined;
      refuseSilent(state, { code: "unavailable", detail }, now);
      if (isNews) log.error({ stream: state.name }, `${fault}: its events are refused`);
      stream.silentUnder = leader;
    } else if (stream.silentUnder !== undefined && state.silence === undefined) {
      stream.silentUnder = undefined;
      log.info({ stream: state.name }, "a stream acknowledges again: its events are taken");
    }
    return isSilent ? [fault] : [];
  }

  function forgetSilence(stream: Watched): void {
    stream.silentUnder = undefined;
    stream.state.silentAtMs = undefined;
    stream.state.silence = undefined;
  }

  function refuse({ state }: Watched, why: string): void {
    const detail = `Stream ${state.name} would not keep what a 200 promises: ${why}`;
    if (state.refusal?.detail === detail) return;
    state.refusal = { code: "unavailable", detail };
    log.error(
      { stream: state.name, reason: why },
      "a stream would break what a 200 promises: its events are refused",
    );
  }

  function accept({ state }: Watched): void {
    if (state.refusal === undefined) return;
    state.refusal = undefined;
    log.info({ stream: state.name }, "a stream is as it should be again: its events are taken");
  }

  async function askAll(): Promise<void> {
    if (link.connected) await Promise.all(watched.map(ask));
  }

  /**
   * Those that take no events now, as nothing is sent that would have them asked, and some of the
   * others in turn.
   */
  function askSome(): void {
    if (!link.connected) return;
    const now = nowMs();
    for (const stream of watched)
      if (isRefused(stream) && now >= stream.state.askAtMs) void ask(stream);
    for (let count = Math.min(idleAtOnce, watched.length); count > 0; count--) {
      nextIdle = (nextIdle + 1) % watched.length;
      void ask(watched[nextIdle]!);
    }
  }

  /**
   * A server that is cut off from its cluster serves nobody, while others that this process may
   * reach go on without it.
   */
  function leaveStuckServer(): void {
    const now = nowMs();
    const isServed = watched.some(
      ({ isStuck, state }) => !isStuck || now - state.ackedAtMs < stuckMsMax,
    );
    if (isServed || !link.connected) {
      stuckSinceMs = undefined;
      if (isServed) tryAgainMs = tryAgainMsMin;
      return;
    }
    stuckSinceMs ??= now;
    if (now - stuckSinceMs < tryAgainMs || !link.tryAnotherServer()) return;
    log.warn(
      { server: link.connection.getServer() },
      "no stream is served through this server: another one is tried",
    );
    stuckSinceMs = now;
    tryAgainMs = Math.min(2 * tryAgainMs, tryAgainMsMax);
  }

  const timer = setInterval(() => {
    askSome();
    leaveStuckServer();
  }, everyMs).unref();
  link.onChange((connected) => {
    stuckSinceMs = undefined;
    if (!connected) return;
    // The server may have been restarted, which is what helps.
    for (const stream of watched) {
      forgetSilence(stream);
      stream.history.interrupted();
    }
    void askAll();
  });
  void askAll();

  return {
    async check() {
      if (!link.connected) return ["NATS is not connected"];
      // A stream that has acknowledged meanwhile can store, whatever the question came to.
      const sinceMs = nowMs();
      await askAll();
      const unheard = watched.filter(
        ({ unheard, state }) => unheard !== undefined && state.ackedAtMs < sinceMs,
      );
      if (unheard.length === watched.length)
        return [`JetStream does not answer: ${unheard[0]!.unheard}`];
      return watched.flatMap((stream) => [
        ...(unheard.includes(stream)
          ? [`stream ${stream.wanted.name} does not answer: ${stream.unheard}`]
          : stream.faults),
        ...stream.history.faults(),
      ]);
    },
    sizes: () => watched.flatMap(({ size }) => size ?? []),
    unfit: () => watched.filter(isRefused).length,
    close: () => clearInterval(timer),
  };
}

const givesTwice =
  "it gave sequences twice under a server that went on running, as nats-server 2.10 does on a full disk, and then keeps nothing: " +
  "see to the disk, and restart nats-server";

function isRefused({ state }: Watched): boolean {
  return (state.refusal ?? state.silence) !== undefined;
}

function silenceOf(stream: string): string {
  return (
    `stream ${stream} answers questions, and acknowledges nothing: after a failed write nats-server 2.14 and newer ` +
    "store nothing until they are restarted: see its log and its /healthz, see to the disk, and restart nats-server"
  );
}

function noQuorumOf(stream: string): string {
  return (
    `stream ${stream} has no quorum: its leader has not heard from most of the servers that hold it, ` +
    "and stores nothing until it does: see that they run, and reach one another"
  );
}

/**
 * Whether its leader hears from a majority, itself among them: a leader cut off goes on leading for
 * some seconds. Only it says this.
 */
function hasQuorum({ cluster }: StreamInfo): boolean {
  const others = cluster?.replicas ?? [];
  // One that it never heard from was active 0 ns ago.
  const heard = others.filter(
    ({ offline, current, active }) =>
      offline !== true && active < heardMsMax * nanosPerMs && (current || active > 0),
  ).length;
  return (1 + heard) * 2 > 1 + others.length;
}
