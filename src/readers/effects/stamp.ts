// Orders the writes of properties by time and position. The order is the same in every store, and
// does not depend on the order in which frames are read.

import type { LinePlace, Stamp } from "./types.ts";

// Number of base-36 digits of each part. They are enough for 46,655 epochs and partitions, every
// safe integer as a sequence, and 60 million lines per frame.
const epochDigits = 3;
const partitionDigits = 3;
const sequenceDigits = 11;
const lineDigits = 5;

export function frameRank(frame: Omit<LinePlace, "line">): string {
  const lane = frame.lane === "live" ? "l" : "h";
  const epoch = digits(frame.epoch, epochDigits);
  const partition = digits(frame.partition, partitionDigits);
  return lane + epoch + partition + digits(frame.sequence, sequenceDigits);
}

/** Returns the rank of a line. The code-unit order of ranks is the order of the positions. */
export function lineRank(rankOfFrame: string, line: number): string {
  return rankOfFrame + digits(line, lineDigits);
}

export function rankOf(place: LinePlace): string {
  return lineRank(frameRank(place), place.line);
}

/** Returns a negative number if `a` is older, and 0 if both stamps are from the same line. */
export function compareStamps(a: Stamp, b: Stamp): number {
  if (a.timeMs !== b.timeMs) return a.timeMs - b.timeMs;
  if (a.rank === b.rank) return 0;
  return a.rank < b.rank ? -1 : 1;
}

/**
 * Returns the stamp for the second id of an event that links two ids. It sorts directly after the
 * stamp of the event itself, so that the event's own id counts as the older id.
 */
export function stampOfOtherId(stamp: Stamp): Stamp {
  return { timeMs: stamp.timeMs, rank: `${stamp.rank}~` };
}

function digits(value: number, width: number): string {
  return value.toString(36).padStart(width, "0");
}
