// What is known of each stream on the way to a 200: whether it has room, whether it is fit to keep
// what a 200 promises, and how far its acknowledgements have come. The publisher and the watch
// write what they find here; it asks JetStream nothing.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/lane.ts";
import { lanes, streamName } from "./names.ts";

/** A stream as the publisher sees it. */
export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  /** Until this time frames for the stream are refused without a publish. */
  fullUntilMonotonicMs: number;
  /**
   * Whether a frame for the stream was refused because the whole server or account has no room, and
   * none was acknowledged since.
   */
  isServerFull: boolean;
  /**
   * Why the stream would not keep what a 200 promises. While this is set, nothing is sent to the
   * stream, and what it acknowledges does not count.
   */
  refusal: Problem | undefined;
  /**
   * How many bytes the stream takes in one message, headers included; Infinity without a limit of
   * its own.
   */
  messageBytesMax: number;
  /**
   * Whether the stream was last heard to take atomic batches, and a server leads it that stores
   * them well.
   */
  takesAtomicBatches: boolean;
  /** The JetStream domain that the stream is in, "" for none; undefined until it is known. */
  domain: string | undefined;
  /** The highest sequence that an acknowledgement has named. */
  sequence: number;
  /** When the stream last acknowledged a message that it had not stored before. */
  ackedMonotonicMs: number;
  /**
   * When a frame last came to its deadline unanswered; undefined once the stream acknowledges a new
   * message.
   */
  silentMonotonicMs: number | undefined;
  /**
   * Why the stream's events are refused while it answers questions and acknowledges nothing. A
   * request is let through at times all the same. An acknowledgement ends this.
   */
  silence: Problem | undefined;
  /**
   * Why NATS rejects what this process publishes to the stream, as last reported. An
   * acknowledgement or a new connection ends this.
   */
  denial: string | undefined;
  /** From this time on requests are let through to the silent stream, until one brings lines. */
  probeMonotonicMs: number;
  /**
   * Since when the stream stores nothing that is sent to it, as far as this process has noticed.
   * Undefined while it stores.
   */
  awaySinceMonotonicMs: number | undefined;
  /**
   * Set when an acknowledgement shows that what the stream had before is gone. Stays until what a
   * leader says of the stream has been judged.
   */
  wentBack: WentBack | undefined;
  /** When the stream last went back. Frames first sent before that prove nothing more. */
  wentBackMonotonicMs: number;
  /** The last answer of the stream's leader; undefined before the first, and while it is missing. */
  reading: StreamReading | undefined;
  /** From this time on, sending a frame to the stream calls `ask`. */
  askMonotonicMs: number;
  /** Asks JetStream about the stream now. Set by the watch of the stream. */
  ask: () => void;
}

/** What the stream holds and may hold. A new object for each answer. */
export interface StreamReading {
  /** When the stream was created: differs once it has been deleted and created again. */
  readonly created: string;
  /** The sequence of the oldest message, or one more than the last if there is none. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Messages between the first and the last sequence that were purged or deleted. */
  readonly deleted: number;
  readonly bytes: number;
  /** Infinity without a limit. */
  readonly bytesMax: number;
}

/**
 * `from` is a sequence that was acknowledged. `to` is not above it, and was given to a frame that
 * was sent later.
 */
export interface WentBack {
  readonly from: number;
  readonly to: number;
}

/**
 * `cut_back`: the same stream ends before what it acknowledged. `made_anew`: it is another stream
 * of that name, made after the first was deleted or its disk was lost.
 */
export const regressionCauses = ["cut_back", "made_anew"] as const;
export type RegressionCause = (typeof regressionCauses)[number];

/** What the watch of the streams reports. */
export interface StreamMetrics {
  /** A stream of the lane has lost what it had acknowledged. */
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
 * From now on nothing is sent to the stream, until its leader has said what the stream has and how
 * it is configured.
 */
export function doubt(state: StreamState, wentBack: WentBack, monotonicMs: number): void {
  const { from, to } = wentBack;
  state.wentBack = wentBack;
  state.wentBackMonotonicMs = monotonicMs;
  const detail = `Stream ${state.name} gave sequence ${to} after ${from}: it is asked what it still has`;
  state.refusal ??= { code: "unavailable", detail };
  noteAway(state, monotonicMs);
  state.ask();
}

/** Notes that the stream has stored nothing new since that time, or since it last did. */
export function noteAway(state: StreamState, sinceMonotonicMs: number): void {
  const since = Math.max(sinceMonotonicMs, state.ackedMonotonicMs);
  state.awaySinceMonotonicMs = Math.min(since, state.awaySinceMonotonicMs ?? since);
}

/** How long the stream has been away; 0 while it stores. */
export function awayMs({ awaySinceMonotonicMs: since }: StreamState, monotonicMs: number): number {
  return since === undefined ? 0 : monotonicMs - since;
}

/** Notes that the stream has acknowledged a message that it had not stored before. */
export function heardFrom(stream: StreamState, monotonicMs: number): void {
  stream.ackedMonotonicMs = monotonicMs;
  stream.isServerFull = false;
  stream.silentMonotonicMs = undefined;
  stream.silence = undefined;
  stream.denial = undefined;
  stream.awaySinceMonotonicMs = undefined;
}

/** How often the lines of a request go to a stream that is silent. */
const probeEveryMs = 1_000;

/**
 * From now on requests to the stream are refused. One request with lines for it is let through a
 * second, to find out whether that is still right.
 */
export function refuseSilent(state: StreamState, silence: Problem, monotonicMs: number): void {
  state.silence = silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
}

/** Why a request to a silent stream is refused; undefined for one that is let through. */
export function silenceNow(state: StreamState, monotonicMs: number): Problem | undefined {
  return monotonicMs < state.probeMonotonicMs ? state.silence : undefined;
}

/**
 * Notes that a request brings lines for the stream: it is the probe of a silent one. Others that
 * are let through may bring none, as one without events, or one over its quota.
 */
export function noteLines(state: StreamState, monotonicMs: () => number): void {
  if (state.silence !== undefined) state.probeMonotonicMs = monotonicMs() + probeEveryMs;
}

export class StreamStates {
  /** Lane by lane, partition by partition. */
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

  /** How long all streams have been away; 0 while one stores. */
  awayMs(monotonicMs: number): number {
    return Math.min(...this.all.map((state) => awayMs(state, monotonicMs)));
  }

  /** The connection to NATS is lost. */
  allAway(monotonicMs: number): void {
    for (const state of this.all) noteAway(state, monotonicMs);
  }

  /** The whole server or account has no room until that time. */
  allFullUntil(untilMonotonicMs: number): void {
    for (const state of this.all) state.fullUntilMonotonicMs = untilMonotonicMs;
  }

  /**
   * Why no stream takes events. Undefined when one stream is fit and has room: a full history must
   * not cost live events, nor the other way round.
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
