// The state of each stream as seen by the gateway: whether it has free space, whether it fulfils
// the promise of a 200, and its last acknowledgements. The publisher and the watch write it; this
// file sends no requests to JetStream.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/lane.ts";
import { lanes, streamName } from "./names.ts";

/** A stream as the publisher sees it. */
export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  /** Until this time frames for the stream are rejected without a publish. */
  fullUntilMonotonicMs: number;
  /**
   * Whether a frame for the stream was rejected because the whole server or account is out of
   * storage, and no frame was acknowledged since.
   */
  isServerFull: boolean;
  /**
   * Why the stream would not fulfil the promise of a 200. While this is set, nothing is sent to the
   * stream, and its acknowledgements do not count.
   */
  refusal: Problem | undefined;
  /**
   * The largest message that the stream accepts in bytes, headers included; Infinity without a
   * limit of its own.
   */
  messageBytesMax: number;
  /**
   * Whether the stream, at the last check, accepted atomic batches and its leader stores them
   * efficiently.
   */
  takesAtomicBatches: boolean;
  /** The JetStream domain of the stream, "" for none; undefined until it is known. */
  domain: string | undefined;
  /** The highest acknowledged sequence. */
  sequence: number;
  /** When the stream last acknowledged a new message. */
  ackedMonotonicMs: number;
  /**
   * When a frame last timed out without a response; undefined once the stream acknowledges a new
   * message.
   */
  silentMonotonicMs: number | undefined;
  /**
   * Why the stream's events are rejected while it responds to requests but acknowledges nothing.
   * Probe requests are still let through at intervals. An acknowledgement ends this state.
   */
  silence: Problem | undefined;
  /**
   * Why NATS rejects what this process publishes to the stream, as last reported. An
   * acknowledgement or a new connection ends this state.
   */
  denial: string | undefined;
  /** From this time on requests to the silent stream are let through, until one has lines. */
  probeMonotonicMs: number;
  /**
   * Since when the stream has stored nothing that was sent to it, as far as this process has
   * noticed. Undefined while it stores.
   */
  awaySinceMonotonicMs: number | undefined;
  /**
   * Set when an acknowledgement shows that the stream has lost data. Cleared when the leader's
   * description of the stream has been checked.
   */
  wentBack: WentBack | undefined;
  /** When the stream last went back. Frames first sent before that prove nothing new. */
  wentBackMonotonicMs: number;
  /**
   * The last response of the stream's leader; undefined before the first one, and while the stream
   * is missing.
   */
  reading: StreamReading | undefined;
  /** From this time on, sending a frame to the stream calls `ask`. */
  askMonotonicMs: number;
  /** Requests the stream's state from JetStream now. Set by the watch of the stream. */
  ask: () => void;
}

/** The content and limits of the stream. A new object for each response. */
export interface StreamReading {
  /** When the stream was created: changes if it is deleted and created again. */
  readonly created: string;
  /** The sequence of the oldest message, or one more than the last if there is none. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Number of messages between the first and the last sequence that were purged or deleted. */
  readonly deleted: number;
  readonly bytes: number;
  /** Infinity without a limit. */
  readonly bytesMax: number;
}

/**
 * `from` is an acknowledged sequence. `to` is not above it, although it was assigned to a frame
 * that was sent later.
 */
export interface WentBack {
  readonly from: number;
  readonly to: number;
}

/**
 * `cut_back`: the same stream ends before what it acknowledged. `made_anew`: another stream of that
 * name, created after the first one was deleted or its disk was lost.
 */
export const regressionCauses = ["cut_back", "made_anew"] as const;
export type RegressionCause = (typeof regressionCauses)[number];

/** The metrics of the watch of the streams. */
export interface StreamMetrics {
  /** A stream of the lane has lost acknowledged messages. */
  streamWentBack(lane: Lane, cause: RegressionCause): void;
}

/** Why nothing may be sent to the stream now. */
export function refusalNow(
  { refusal, fullUntilMonotonicMs }: StreamState,
  monotonicMs: number,
): ErrorCode | undefined {
  return refusal?.code ?? (monotonicMs < fullUntilMonotonicMs ? "store_full" : undefined);
}

/**
 * From now on nothing is sent to the stream, until its leader has reported the content and
 * configuration of the stream.
 */
export function suspend(state: StreamState, wentBack: WentBack, monotonicMs: number): void {
  const { from, to } = wentBack;
  state.wentBack = wentBack;
  state.wentBackMonotonicMs = monotonicMs;
  const detail = `Stream ${state.name} assigned sequence ${to} after ${from}: checking what it still has`;
  state.refusal ??= { code: "unavailable", detail };
  noteAway(state, monotonicMs);
  state.ask();
}

/**
 * Records that the stream has stored nothing new since that time, or since its last
 * acknowledgement.
 */
export function noteAway(state: StreamState, sinceMonotonicMs: number): void {
  const since = Math.max(sinceMonotonicMs, state.ackedMonotonicMs);
  state.awaySinceMonotonicMs = Math.min(since, state.awaySinceMonotonicMs ?? since);
}

/** How long the stream has stored nothing; 0 while it stores. */
export function awayMs({ awaySinceMonotonicMs: since }: StreamState, monotonicMs: number): number {
  return since === undefined ? 0 : monotonicMs - since;
}

/** Records that the stream has acknowledged a new message. */
export function noteStored(stream: StreamState, monotonicMs: number): void {
  stream.ackedMonotonicMs = monotonicMs;
  stream.isServerFull = false;
  stream.silentMonotonicMs = undefined;
  stream.silence = undefined;
  stream.denial = undefined;
  stream.awaySinceMonotonicMs = undefined;
}

/** Interval of the probes of a silent stream. */
const probeEveryMs = 1_000;

/**
 * From now on requests to the stream are rejected. One request with lines per second is let through
 * as a probe.
 */
export function refuseSilent(state: StreamState, silence: Problem, monotonicMs: number): void {
  state.silence = silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
}

/** Why a request to a silent stream is rejected; undefined for one that is let through. */
export function silenceNow(state: StreamState, monotonicMs: number): Problem | undefined {
  return monotonicMs < state.probeMonotonicMs ? state.silence : undefined;
}

/**
 * Records that a request has lines for the stream: it is the probe of a silent one. Other requests
 * that are let through may have none, such as one without events, or one over its quota.
 */
export function noteLines(state: StreamState, monotonicMs: () => number): void {
  if (state.silence !== undefined) state.probeMonotonicMs = monotonicMs() + probeEveryMs;
}

export class StreamStates {
  /** Sorted by lane, then by partition. */
  readonly all: readonly StreamState[];
  readonly #partitions: number;

  constructor(subjectPrefix: string, partitions: number) {
    this.#partitions = partitions;
    this.all = lanes.flatMap((lane) =>
      Array.from({ length: partitions }, (_, partition) =>
        newState(streamName(subjectPrefix, lane, partition), lane),
      ),
    );
  }

  of(lane: Lane, partition: number): StreamState {
    return this.all[lanes.indexOf(lane) * this.#partitions + partition]!;
  }

  /** How long all streams have stored nothing; 0 while one stores. */
  awayMs(monotonicMs: number): number {
    return Math.min(...this.all.map((state) => awayMs(state, monotonicMs)));
  }

  /** The connection to NATS is lost. */
  allAway(monotonicMs: number): void {
    for (const state of this.all) noteAway(state, monotonicMs);
  }

  /** The whole server or account is out of storage until that time. */
  allFullUntil(untilMonotonicMs: number): void {
    for (const state of this.all) state.fullUntilMonotonicMs = untilMonotonicMs;
  }

  /**
   * Why no stream accepts events. Undefined if at least one stream is usable and has free space: a
   * full historical lane must not block live events, or the other way round.
   */
  refusalOfAll(monotonicMs: () => number): "store_full" | "unavailable" | undefined {
    let unfit = false;
    for (const state of this.all) {
      if (state.refusal !== undefined) unfit = true;
      else if (state.fullUntilMonotonicMs === 0 || monotonicMs() >= state.fullUntilMonotonicMs)
        return undefined;
    }
    return unfit ? "unavailable" : "store_full";
  }
}

function newState(name: string, lane: Lane): StreamState {
  return {
    name,
    lane,
    fullUntilMonotonicMs: 0,
    isServerFull: false,
    refusal: undefined,
    messageBytesMax: Number.POSITIVE_INFINITY,
    takesAtomicBatches: false,
    domain: undefined,
    sequence: 0,
    ackedMonotonicMs: Number.NEGATIVE_INFINITY,
    silentMonotonicMs: undefined,
    silence: undefined,
    denial: undefined,
    probeMonotonicMs: 0,
    awaySinceMonotonicMs: undefined,
    wentBack: undefined,
    wentBackMonotonicMs: Number.NEGATIVE_INFINITY,
    reading: undefined,
    askMonotonicMs: Number.POSITIVE_INFINITY,
    ask: () => {},
  };
}
