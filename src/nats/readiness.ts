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
  /** Until then frames for it are refused without a publish. */
  fullUntilMonotonicMs: number;
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
  /** When the last acknowledgement came. */
  ackedMonotonicMs: number;
  /** Since then a frame has come to its deadline unanswered, and no acknowledgement has come. */
  silentMonotonicMs: number | undefined;
  /**
   * Why its events are refused while it answers questions and acknowledges nothing, but for a
   * request at times. Ends with an acknowledgement.
   */
  silence: Problem | undefined;
  /** From then on the next request is sent to it all the same. */
  probeMonotonicMs: number;
  /**
   * An acknowledgement has shown that what the stream had before is gone. Stays until a leader's
   * reading has judged it.
   */
  wentBack: WentBack | undefined;
  /** When it went back the last time: frames from before it prove nothing more. */
  wentBackMonotonicMs: number;
  /** Whoever sends a frame from then on has the stream asked for. */
  askMonotonicMs: number;
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
  refusalOfAll(monotonicMs: () => number): "store_full" | "unavailable" | undefined;
}

/** Why nothing may be sent to the stream now. */
export function refusalNow(
  { refusal, fullUntilMonotonicMs }: StreamState,
  monotonicMs: number,
): ErrorCode | undefined {
  return refusal?.code ?? (monotonicMs < fullUntilMonotonicMs ? "store_full" : undefined);
}

/** From now on nothing is sent to it, until its leader has said what it has and how it is set. */
export function doubt(state: StreamState, wentBack: WentBack, monotonicMs: number): void {
  const { from, to } = wentBack;
  state.wentBack = wentBack;
  state.wentBackMonotonicMs = monotonicMs;
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
export function refuseSilent(state: StreamState, silence: Problem, monotonicMs: number): void {
  state.silence = silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
}

/** Undefined for the request that is to find out. */
export function silenceNow(state: StreamState, monotonicMs: number): Problem | undefined {
  if (monotonicMs < state.probeMonotonicMs) return state.silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
  return undefined;
}

export function createStreamStates(subjectPrefix: string, partitions: number): StreamStates {
  // Lane by lane, partition by partition.
  const all = lanes.flatMap((lane) =>
    Array.from({ length: partitions }, (_, partition): StreamState => {
      return {
        name: streamName(subjectPrefix, lane, partition),
        lane,
        fullUntilMonotonicMs: 0,
        refusal: undefined,
        messageBytesMax: Number.POSITIVE_INFINITY,
        domain: undefined,
        sequence: 0,
        ackedMonotonicMs: Number.NEGATIVE_INFINITY,
        silentMonotonicMs: undefined,
        silence: undefined,
        probeMonotonicMs: 0,
        wentBack: undefined,
        wentBackMonotonicMs: Number.NEGATIVE_INFINITY,
        askMonotonicMs: Number.POSITIVE_INFINITY,
        ask: () => {},
      };
    }),
  );
  return {
    all,
    of: (lane, partition) => all[lanes.indexOf(lane) * partitions + partition]!,
    allFullUntil(untilMs) {
      for (const state of all) state.fullUntilMonotonicMs = untilMs;
    },
    refusalOfAll(monotonicMs) {
      let unfit = false;
      for (const state of all) {
        if (state.refusal !== undefined) unfit = true;
        else if (state.fullUntilMonotonicMs === 0 || monotonicMs() >= state.fullUntilMonotonicMs)
          return undefined;
      }
      return unfit ? "unavailable" : "store_full";
    },
  };
}
