// Stamps: the time of a write, in a form that is the same in every store, in every run and for
// every order of frames. Creates and compares them.

import type { LinePlace, Stamp } from "./types.ts";

// Widths in base 36: 46,655 epochs and partitions, every safe integer, 60 million lines per frame.
const epochDigits = 3;
const partitionDigits = 3;
const sequenceDigits = 11;
const lineDigits = 5;

/** The common prefix of the ranks of a frame's lines. */
export function frameRank(frame: Omit<LinePlace, "line">): string {
  const lane = frame.lane === "live" ? "l" : "h";
  const epoch = digits(frame.epoch, epochDigits);
  const partition = digits(frame.partition, partitionDigits);
  return lane + epoch + partition + digits(frame.sequence, sequenceDigits);
}

/**
 * A line's rank, which sorts by code unit as places do. `rankOfFrame`: the result of `frameRank`.
 */
export function lineRank(rankOfFrame: string, line: number): string {
  return rankOfFrame + digits(line, lineDigits);
}

export function rankOf(place: LinePlace): string {
  return lineRank(frameRank(place), place.line);
}

/** Negative: `a` is older. 0 only for stamps of the same line. */
export function compareStamps(a: Stamp, b: Stamp): number {
  if (a.timeMs !== b.timeMs) return a.timeMs - b.timeMs;
  if (a.rank === b.rank) return 0;
  return a.rank < b.rank ? -1 : 1;
}

/**
 * The stamp of the other id that a link event names: just after the event's own id, and before the
 * next line. So of two ids that were first seen in one event, the event's own is older.
 */
export function stampOfOtherId(stamp: Stamp): Stamp {
  return { timeMs: stamp.timeMs, rank: `${stamp.rank}~` };
}

function digits(value: number, width: number): string {
  return value.toString(36).padStart(width, "0");
}
