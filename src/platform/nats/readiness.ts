// The state of each stream in the gateway: whether it has free space, whether it fulfils the
// promise of a 200, and its last acknowledgements. The publisher and the watch of the streams
// change the state.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/lane.ts";
import { lanes, streamName } from "./names.ts";

export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  /** Until this time frames for the stream are rejected without being published. */
  fullUntilMonotonicMs: number;
  /** Whether the last rejected frame found the whole server or account full. */
  isServerFull: boolean;
  /** Why a 200 would promise too much. No frame is sent, and acknowledgements do not count. */
  refusal: Problem | undefined;
  /** Maximum message size of the stream, headers included; Infinity for no limit. */
  messageBytesMax: number;
  /** Whether the stream accepts atomic batches and its leader stores them efficiently. */
  takesAtomicBatches: boolean;
  /** The JetStream domain of the stream; "" if it has none, undefined while it is unknown. */
  domain: string | undefined;
  sequence: number;
  ackedMonotonicMs: number;
  /** Time when a frame last timed out without a response. A new acknowledgement resets it. */
  silentMonotonicMs: number | undefined;
  /** The reason for rejecting events, except probes, of a stream that acknowledges no message. */
  silence: Problem | undefined;
  /** The reason of the last rejected publish. An acknowledgement or a new connection resets it. */
  denial: string | undefined;
  /** Time from which one request with lines may pass to a silent stream. */
  probeMonotonicMs: number;
  /** Time since which the stream has stored no frame of this process; undefined while it stores. */
  awaySinceMonotonicMs: number | undefined;
  /** A sign of lost data. Reset after the leader has reported what the stream still has. */
  wentBack: WentBack | undefined;
  /** Time of the last sign of lost data. Frames first sent before do not show the present state. */
  wentBackMonotonicMs: number;
  /** The last response of the leader; undefined before it, and while the stream is missing. */
  reading: StreamReading | undefined;
  /** Time from which sending a frame to the stream calls `ask`. */
  askMonotonicMs: number;
  /** Requests the state of the stream immediately. Set by the watch of the stream. */
  ask: () => void;
}

/** A leader's report on the stream. Each response creates a new object. */
export interface StreamReading {
  /** Creation time. A new stream of the same name has another one. */
  readonly created: string;
  /** The sequence of the oldest message. If the stream is empty, the next sequence. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Number of removed messages between the first and the last sequence. */
  readonly deleted: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/**
 * A sign of lost data: a frame that was sent later got sequence `to`, which is not above `from`.
 */
export interface WentBack {
  readonly from: number;
  readonly to: number;
}

/**
 * Causes of a sequence that decreased. `cut_back`: the same stream ends earlier. `made_anew`: a new
 * stream has the name of a lost one.
 */
export const regressionCauses = ["cut_back", "made_anew"] as const;
export type RegressionCause = (typeof regressionCauses)[number];

export interface StreamMetrics {
  streamWentBack(lane: Lane, cause: RegressionCause): void;
}

/** Returns the error code for events of a stream that must receive nothing now. */
export function refusalNow(
  { refusal, fullUntilMonotonicMs }: StreamState,
  monotonicMs: number,
): ErrorCode | undefined {
  return refusal?.code ?? (monotonicMs < fullUntilMonotonicMs ? "store_full" : undefined);
}

/** Stops sending until the leader has reported the content and configuration of the stream. */
export function suspend(state: StreamState, wentBack: WentBack, monotonicMs: number): void {
  const { from, to } = wentBack;
  state.wentBack = wentBack;
  state.wentBackMonotonicMs = monotonicMs;
  const detail = `Stream ${state.name} assigned sequence ${to} after ${from}: the gateway checks which messages it still has`;
  state.refusal ??= { code: "unavailable", detail };
  noteAway(state, monotonicMs);
  state.ask();
}

/** Records that the stream has stored nothing since the given time or its last acknowledgement. */
export function noteAway(state: StreamState, sinceMonotonicMs: number): void {
  const since = Math.max(sinceMonotonicMs, state.ackedMonotonicMs);
  state.awaySinceMonotonicMs = Math.min(since, state.awaySinceMonotonicMs ?? since);
}

/** Returns for how many milliseconds the stream has stored nothing; 0 while it stores. */
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

/** Rejects all requests to the stream except probes: one with lines per interval. */
export function refuseSilent(state: StreamState, silence: Problem, monotonicMs: number): void {
  state.silence = silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
}

/** Returns the reason for rejecting a request to a silent stream; undefined if it may pass. */
export function silenceNow(state: StreamState, monotonicMs: number): Problem | undefined {
  return monotonicMs < state.probeMonotonicMs ? state.silence : undefined;
}

/** Makes a request with lines the probe of a silent stream. */
export function noteLines(state: StreamState, monotonicMs: () => number): void {
  if (state.silence !== undefined) state.probeMonotonicMs = monotonicMs() + probeEveryMs;
}

export class StreamStates {
  /** All states, sorted by lane, then by partition. */
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

  /** Returns for how many milliseconds all streams have stored nothing; 0 while one stores. */
  awayMs(monotonicMs: number): number {
    return Math.min(...this.all.map((state) => awayMs(state, monotonicMs)));
  }

  allAway(monotonicMs: number): void {
    for (const state of this.all) noteAway(state, monotonicMs);
  }

  /** Records that the whole server or account is out of storage until the given time. */
  allFullUntil(untilMonotonicMs: number): void {
    for (const state of this.all) state.fullUntilMonotonicMs = untilMonotonicMs;
  }

  /** Returns the code to reject all events with; undefined if one stream is usable. */
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
