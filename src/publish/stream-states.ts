// What the publisher remembers of each stream: whether it has just said that it is full. Asks JetStream nothing.

import type { Lane } from "../types.ts";
import { lanes, streamName } from "./subject.ts";

/** A stream as the publisher sees it. */
export interface StreamState {
  readonly name: string;
  /** Monotonic milliseconds. Until then frames for it are refused without a publish. */
  fullUntilMs: number;
}

export interface StreamStates {
  of(lane: Lane, partition: number): StreamState;
  /** The whole server or account has no room. */
  allFullUntil(untilMs: number): void;
  /** One stream with room is enough for false: a full history must not cost live events, nor the other way round. */
  everyFull(nowMs: number): boolean;
}

export function createStreamStates(subjectPrefix: string, partitions: number): StreamStates {
  // Lane by lane, partition by partition.
  const states = lanes.flatMap((lane) =>
    Array.from({ length: partitions }, (_, partition): StreamState => {
      return { name: streamName(subjectPrefix, lane, partition), fullUntilMs: 0 };
    }),
  );
  return {
    of: (lane, partition) => states[lanes.indexOf(lane) * partitions + partition]!,
    allFullUntil(untilMs) {
      for (const state of states) state.fullUntilMs = untilMs;
    },
    everyFull(nowMs) {
      for (const state of states) if (nowMs >= state.fullUntilMs) return false;
      return true;
    },
  };
}
