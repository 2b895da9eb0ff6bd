// The state of each stream in the gateway: free space, errors, and the last acknowledgements. The
// publisher and the watch of the streams change the state.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/lane.ts";
import { lanes, streamName } from "./names.ts";

export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  fullUntilMonotonicMs: number;
  isServerFull: boolean;
  /** Why a 200 would not mean "stored". While set, no frame is sent. */
  refusal: Problem | undefined;
  /** Headers included; Infinity if the stream has no limit. */
  messageBytesMax: number;
  takesAtomicBatches: boolean;
  /** "" if the stream has no JetStream domain, undefined while the domain is unknown. */
  domain: string | undefined;
  sequence: number;
  ackedMonotonicMs: number;
  silentMonotonicMs: number | undefined;
  silence: Problem | undefined;
  denial: string | undefined;
  probeMonotonicMs: number;
  awaySinceMonotonicMs: number | undefined;
  wentBack: WentBack | undefined;
  wentBackMonotonicMs: number;
  reading: StreamReading | undefined;
  askMonotonicMs: number;
  /** Requests the state of the stream immediately. The watch of the stream sets this function. */
  ask: () => void;
}

/** A leader's report on the stream. Each response creates a new object. */
export interface StreamReading {
  /** A new stream of the same name has a different creation time. */
  readonly created: string;
  /** The sequence of the oldest message, or the next sequence if the stream is empty. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly deleted: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/** A sign of lost data: a later frame got the sequence `to`, which is not above `from`. */
export interface WentBack {
  readonly from: number;
  readonly to: number;
}

/** `cut_back`: the same stream ends earlier. `made_anew`: a new stream replaced the lost stream. */
export const regressionCauses = ["cut_back", "made_anew"] as const;
export type RegressionCause = (typeof regressionCauses)[number];

export interface StreamMetrics {
  streamWentBack(lane: Lane, cause: RegressionCause): void;
}

export function refusalNow(
  { refusal, fullUntilMonotonicMs }: StreamState,
  monotonicMs: number,
): ErrorCode | undefined {
  return refusal?.code ?? (monotonicMs < fullUntilMonotonicMs ? "store_full" : undefined);
}

export function suspend(state: StreamState, wentBack: WentBack, monotonicMs: number): void {
  const { from, to } = wentBack;
  state.wentBack = wentBack;
  state.wentBackMonotonicMs = monotonicMs;
  const detail = `Stream ${state.name} assigned sequence ${to} after ${from}: the gateway checks which messages it still has`;
  state.refusal ??= { code: "unavailable", detail };
  noteAway(state, monotonicMs);
  state.ask();
}

export function noteAway(state: StreamState, sinceMonotonicMs: number): void {
  const since = Math.max(sinceMonotonicMs, state.ackedMonotonicMs);
  state.awaySinceMonotonicMs = Math.min(since, state.awaySinceMonotonicMs ?? since);
}

export function awayMs({ awaySinceMonotonicMs: since }: StreamState, monotonicMs: number): number {
  return since === undefined ? 0 : monotonicMs - since;
}

export function noteStored(stream: StreamState, monotonicMs: number): void {
  stream.ackedMonotonicMs = monotonicMs;
  stream.isServerFull = false;
  stream.silentMonotonicMs = undefined;
  stream.silence = undefined;
  stream.denial = undefined;
  stream.awaySinceMonotonicMs = undefined;
}

const probeEveryMs = 1_000;

/** Starts rejecting requests to the stream. One request with lines per interval may pass. */
export function refuseSilent(state: StreamState, silence: Problem, monotonicMs: number): void {
  state.silence = silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
}

export function silenceNow(state: StreamState, monotonicMs: number): Problem | undefined {
  return monotonicMs < state.probeMonotonicMs ? state.silence : undefined;
}

export function noteLines(state: StreamState, monotonicMs: () => number): void {
  if (state.silence !== undefined) state.probeMonotonicMs = monotonicMs() + probeEveryMs;
}

export class StreamStates {
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

  awayMs(monotonicMs: number): number {
    return Math.min(...this.all.map((state) => awayMs(state, monotonicMs)));
  }

  allAway(monotonicMs: number): void {
    for (const state of this.all) noteAway(state, monotonicMs);
  }

  allFullUntil(untilMonotonicMs: number): void {
    for (const state of this.all) state.fullUntilMonotonicMs = untilMonotonicMs;
  }

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
