// What the gateway knows about each stream: its free space, its errors, and the last
// acknowledgements. The publisher and `StreamWatch` change this state.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/lane.ts";
import { lanes, streamName } from "./names.ts";

export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  fullUntilMonotonicMs: number;
  isServerFull: boolean;
  /** The reason why the stream may lose acknowledged events. While it is set, no frame is sent. */
  refusal: Problem | undefined;
  /** The maximum size of a message with its headers. It is Infinity if there is no limit. */
  messageBytesMax: number;
  takesAtomicBatches: boolean;
  /** The JetStream domain of the stream. "" means no domain, undefined not yet known. */
  domain: string | undefined;
  sequence: number;
  ackedMonotonicMs: number;
  silentMonotonicMs: number | undefined;
  silence: Problem | undefined;
  denial: string | undefined;
  probeMonotonicMs: number;
  outageSinceMonotonicMs: number | undefined;
  regression: Regression | undefined;
  regressionMonotonicMs: number;
  reading: StreamReading | undefined;
  askMonotonicMs: number;
  /** Queries the state of the stream immediately. `StreamWatch` sets this function. */
  ask: () => void;
}

/** The state of a stream, as its leader reported it. Each response creates a new object. */
export interface StreamReading {
  /** The creation time of the stream. It changes if the stream is deleted and created again. */
  readonly created: string;
  /** The sequence of the oldest message. If the stream is empty, it is the next sequence. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly deleted: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/**
 * A sign that data was lost: a frame that was sent later got the sequence `to`, which is not higher
 * than `from`.
 */
export interface Regression {
  readonly from: number;
  readonly to: number;
}

/**
 * `cut_back`: the same stream has a lower last sequence than before. `made_anew`: the stream was
 * lost, and a new stream has the same name.
 */
export const regressionCauses = ["cut_back", "made_anew"] as const;
export type RegressionCause = (typeof regressionCauses)[number];

export interface StreamMetrics {
  streamRegressed(lane: Lane, cause: RegressionCause): void;
}

export function refusalNow(
  { refusal, fullUntilMonotonicMs }: StreamState,
  monotonicMs: number,
): ErrorCode | undefined {
  return refusal?.code ?? (monotonicMs < fullUntilMonotonicMs ? "store_full" : undefined);
}

export function suspend(state: StreamState, regression: Regression, monotonicMs: number): void {
  const { from, to } = regression;
  state.regression = regression;
  state.regressionMonotonicMs = monotonicMs;
  const detail = `Stream ${state.name} assigned sequence ${to} after ${from}: the gateway checks which messages it still has`;
  state.refusal ??= { code: "unavailable", detail };
  noteOutage(state, monotonicMs);
  state.ask();
}

export function noteOutage(state: StreamState, sinceMonotonicMs: number): void {
  const since = Math.max(sinceMonotonicMs, state.ackedMonotonicMs);
  state.outageSinceMonotonicMs = Math.min(since, state.outageSinceMonotonicMs ?? since);
}

export function outageMs(
  { outageSinceMonotonicMs: since }: StreamState,
  monotonicMs: number,
): number {
  return since === undefined ? 0 : monotonicMs - since;
}

export function noteStored(stream: StreamState, monotonicMs: number): void {
  stream.ackedMonotonicMs = monotonicMs;
  stream.isServerFull = false;
  stream.silentMonotonicMs = undefined;
  stream.silence = undefined;
  stream.denial = undefined;
  stream.outageSinceMonotonicMs = undefined;
}

const probeEveryMs = 1_000;

/**
 * From now on, requests to the stream are rejected. In each interval, one request with lines is
 * accepted, to test the stream.
 */
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

  outageMs(monotonicMs: number): number {
    return Math.min(...this.all.map((state) => outageMs(state, monotonicMs)));
  }

  noteOutageOfAll(monotonicMs: number): void {
    for (const state of this.all) noteOutage(state, monotonicMs);
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
    outageSinceMonotonicMs: undefined,
    regression: undefined,
    regressionMonotonicMs: Number.NEGATIVE_INFINITY,
    reading: undefined,
    askMonotonicMs: Number.POSITIVE_INFINITY,
    ask: () => {},
  };
}
