// What is known of each stream on the way to a 200: whether it has room, whether it is fit to keep
// what a 200 promises, and how far its acknowledgements have come. The publisher and the watch
// write what they find here; it asks JetStream nothing.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/types.ts";
import { lanes, streamName } from "./names.ts";

/** A stream as the publisher sees it. */
export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  /** Monotonic milliseconds. Until then frames for it are refused without a publish. */
  fullUntilMs: number;
  /**
   * Why it would not keep what a 200 promises: nothing is sent to it, and what it acknowledges does
   * not count.
   */
  refusal: Problem | undefined;
  /** What it takes in one message, headers included; Infinity without a limit of its own. */
  messageBytesMax: number;
  /** JetStream's domain that it is in, "" for none; undefined until it is known. */
  domain: string | undefined;
  /** The highest sequence that an acknowledgement has named. */
  sequence: number;
  /** Monotonic milliseconds of the last acknowledgement. */
  ackedAtMs: number;
  /**
   * Monotonic milliseconds: since then a frame has come to its deadline without an answer, and no
   * acknowledgement has come.
   */
  silentAtMs: number | undefined;
  /**
   * Why its events are refused while it answers questions and acknowledges nothing, but for a
   * request at times. Ends with an acknowledgement.
   */
  silence: Problem | undefined;
  /** Monotonic milliseconds: from then on the next request is sent to it all the same. */
  probeAtMs: number;
  /**
   * An acknowledgement has shown that what the stream had before is gone. Stays until a leader's
   * reading has judged it.
   */
  wentBack: WentBack | undefined;
  /**
   * Monotonic milliseconds of the last time it went back: frames from before it prove nothing more.
   */
  wentBackAtMs: number;
  /** Monotonic milliseconds: whoever sends a frame from then on has the stream asked for. */
  askAtMs: number;
  /** Asks for the stream now. Set by whoever watches it. */
  ask: () => void;
}

/**
 * A sequence that was acknowledged, and one not above it that a frame was given which was sent
 * later.
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

/** What watching the streams reports. */
export interface StreamMetrics {
  /** A stream of the lane has lost what it had acknowledged. */
  streamWentBack(lane: Lane, cause: RegressionCause): void;
}

export interface StreamStates {
  readonly all: readonly StreamState[];
  of(lane: Lane, partition: number): StreamState;
  /** The whole server or account has no room. */
  allFullUntil(untilMs: number): void;
  /**
   * One stream with room is enough for undefined: a full history must not cost live events, nor the
   * other way round.
   */
  refusalOfAll(nowMs: () => number): "store_full" | "unavailable" | undefined;
}

/** Why nothing may be sent to the stream now. */
export function refusalNow(
  { refusal, fullUntilMs }: StreamState,
  nowMs: number,
): ErrorCode | undefined {
  return refusal?.code ?? (nowMs < fullUntilMs ? "store_full" : undefined);
}

/** From now on nothing is sent to it, until its leader has said what it has and how it is set. */
export function doubt(state: StreamState, wentBack: WentBack, nowMs: number): void {
  const { from, to } = wentBack;
  state.wentBack = wentBack;
  state.wentBackAtMs = nowMs;
  const detail = `Stream ${state.name} gave sequence ${to} after ${from}: it is asked what it still has`;
  state.refusal ??= { code: "unavailable", detail };
  state.ask();
}

/** How often a request is let through to a stream that is silent. */
const probeEveryMs = 1_000;

/**
 * From now on its requests are refused, and the first of each second finds out whether that is
 * still right.
 */
export function refuseSilent(state: StreamState, silence: Problem, nowMs: number): void {
  state.silence = silence;
  state.probeAtMs = nowMs + probeEveryMs;
}

/** Undefined for the request that is to find out. */
export function silenceNow(state: StreamState, nowMs: number): Problem | undefined {
  if (nowMs < state.probeAtMs) return state.silence;
  state.probeAtMs = nowMs + probeEveryMs;
  return undefined;
}

export function createStreamStates(subjectPrefix: string, partitions: number): StreamStates {
  // Lane by lane, partition by partition.
  const all = lanes.flatMap((lane) =>
    Array.from({ length: partitions }, (_, partition): StreamState => {
      return {
        name: streamName(subjectPrefix, lane, partition),
        lane,
        fullUntilMs: 0,
        refusal: undefined,
        messageBytesMax: Number.POSITIVE_INFINITY,
        domain: undefined,
        sequence: 0,
        ackedAtMs: Number.NEGATIVE_INFINITY,
        silentAtMs: undefined,
        silence: undefined,
        probeAtMs: 0,
        wentBack: undefined,
        wentBackAtMs: Number.NEGATIVE_INFINITY,
        askAtMs: Number.POSITIVE_INFINITY,
        ask: () => {},
      };
    }),
  );
  return {
    all,
    of: (lane, partition) => all[lanes.indexOf(lane) * partitions + partition]!,
    allFullUntil(untilMs) {
      for (const state of all) state.fullUntilMs = untilMs;
    },
    refusalOfAll(nowMs) {
      let unfit = false;
      for (const state of all) {
        if (state.refusal !== undefined) unfit = true;
        else if (state.fullUntilMs === 0 || nowMs() >= state.fullUntilMs) return undefined;
      }
      return unfit ? "unavailable" : "store_full";
    },
  };
}
