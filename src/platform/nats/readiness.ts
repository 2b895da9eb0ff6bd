// The state of each stream in the gateway: free space, whether a 200 would keep its promise, and
// the last acknowledgements. The publisher and the watch of the streams change the state.

import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Lane } from "../base/lane.ts";
import { lanes, streamName } from "./names.ts";

export interface StreamState {
  readonly name: string;
  readonly lane: Lane;
  /** Time until which the gateway rejects frames for the stream. */
  fullUntilMonotonicMs: number;
  /** Whether the whole server or account was full at the last rejected frame. */
  isServerFull: boolean;
  /** Why a 200 would promise too much. No frame is sent, and acknowledgements do not count. */
  refusal: Problem | undefined;
  /** Maximum message size of the stream, headers included; Infinity if the stream has no limit. */
  messageBytesMax: number;
  /** Whether the stream accepts atomic batches and its leader stores them efficiently. */
  takesAtomicBatches: boolean;
  /** The JetStream domain of the stream; "" if there is none, undefined while unknown. */
  domain: string | undefined;
  sequence: number;
  ackedMonotonicMs: number;
  /** Time of the last ack timeout; undefined after an acknowledgement. */
  silentMonotonicMs: number | undefined;
  /** Why requests are rejected while the stream acknowledges no message. Probes may pass. */
  silence: Problem | undefined;
  /** The reason for the last rejected publish; undefined after an acknowledgement or reconnect. */
  denial: string | undefined;
  /** Time from which one request with lines may pass to a silent stream. */
  probeMonotonicMs: number;
  /** Time since which the stream has stored no frame of this process; undefined while it does. */
  awaySinceMonotonicMs: number | undefined;
  /** A sign of lost data; undefined after the leader has reported what the stream still has. */
  wentBack: WentBack | undefined;
  /** Time of the last sign of lost data. Frames sent before do not show the present state. */
  wentBackMonotonicMs: number;
  /** The last response of the leader; undefined before it, and while the stream is missing. */
  reading: StreamReading | undefined;
  /** Time from which a frame for the stream triggers `ask`. */
  askMonotonicMs: number;
  /** Requests the state of the stream immediately. The watch of the stream sets this function. */
  ask: () => void;
}

/** A leader's report on the stream. Each response creates a new object. */
export interface StreamReading {
  /** Creation time. A new stream of the same name has a different creation time. */
  readonly created: string;
  /** The sequence of the oldest message, or the next sequence if the stream is empty. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Number of removed messages between the first and the last sequence. */
  readonly deleted: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/** A sign of lost data: `to`, the sequence of a frame that was sent later, is not above `from`. */
export interface WentBack {
  readonly from: number;
  readonly to: number;
}

/**
 * Causes of a sequence that decreased. `cut_back`: the same stream ends earlier. `made_anew`: a new
 * stream has the name of the lost stream.
 */
export const regressionCauses = ["cut_back", "made_anew"] as const;
export type RegressionCause = (typeof regressionCauses)[number];

export interface StreamMetrics {
  streamWentBack(lane: Lane, cause: RegressionCause): void;
}

/** Returns the error code if the gateway may send nothing to the stream now, else undefined. */
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

/** Records that the stream has stored nothing since this time or its last acknowledgement. */
export function noteAway(state: StreamState, sinceMonotonicMs: number): void {
  const since = Math.max(sinceMonotonicMs, state.ackedMonotonicMs);
  state.awaySinceMonotonicMs = Math.min(since, state.awaySinceMonotonicMs ?? since);
}

/** Returns how long the stream has stored nothing, in milliseconds; 0 while it stores frames. */
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

/** Starts rejecting requests to the stream. Per interval, one request with lines may pass. */
export function refuseSilent(state: StreamState, silence: Problem, monotonicMs: number): void {
  state.silence = silence;
  state.probeMonotonicMs = monotonicMs + probeEveryMs;
}

/** Returns the reason for rejecting a request to a silent stream; undefined if it may pass. */
export function silenceNow(state: StreamState, monotonicMs: number): Problem | undefined {
  return monotonicMs < state.probeMonotonicMs ? state.silence : undefined;
}

/** Records a request with lines. If the stream is silent, the request is its probe. */
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

  /** Returns how long no stream has stored a frame, in milliseconds; 0 while any stream does. */
  awayMs(monotonicMs: number): number {
    return Math.min(...this.all.map((state) => awayMs(state, monotonicMs)));
  }

  allAway(monotonicMs: number): void {
    for (const state of this.all) noteAway(state, monotonicMs);
  }

  /** Records that the whole server or account has no free storage until the given time. */
  allFullUntil(untilMonotonicMs: number): void {
    for (const state of this.all) state.fullUntilMonotonicMs = untilMonotonicMs;
  }

  /** Returns the code for rejecting all events; undefined if at least one stream is usable. */
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
