// What this process knows of one project in one stream: numbers only. What they are worth is
// decided in stream-fill.ts.

import type { Ranked } from "./fill-ranking.ts";

/** The sizes are in bytes; `countedIn` and `countedAfter` are numbers of readings and counts. */
export interface ProjectFill extends Ranked {
  /**
   * `counted`: the bytes at the project's last count. `countedIn`: the reading that this count was
   * part of. Both are 0 before the first count.
   */
  counted: number;
  countedIn: number;
  /** How many counts of this stream's projects had been made before the last count. */
  countedAfter: number;
  /** Bytes acknowledged to this process since the last count. */
  acked: number;
  /** Bytes given to the publisher, and neither acknowledged nor refused yet. */
  underWay: number;
  /**
   * The project's part of the stream's `#ackedLately`, after as many of its halvings as `halvings`
   * says.
   */
  ackedLately: number;
  halvings: number;
  /** How many of the readings that found the stream quiet are known here: see `StreamFill`. */
  quietReadings: number;
  isOver: boolean;
}

/** The fill of a project that nothing is known of yet. */
export function newFill(projectId: string, halvings: number, quietReadings: number): ProjectFill {
  const counts = { counted: 0, countedIn: 0, countedAfter: 0, acked: 0, underWay: 0 };
  const known = { ackedLately: 0, halvings, quietReadings };
  return { projectId, ...counts, ...known, isOver: false, place: 0 };
}

/**
 * A stream halves its `#ackedLately` when twice the bytes that it holds have come. So after so many
 * halvings all that a project had added before must have left it.
 */
export const halvingsUntilGone = 2;
const smallPart = 1 / 1_024;

/** Whether the project is over its share, or has bytes that count. */
export function isUsed({ isOver, acked, underWay }: ProjectFill, hasGone: boolean): boolean {
  return isOver || underWay > 0 || (acked > 0 && !hasGone);
}

/**
 * Whether the project has added nothing since a halving, and its part of the stream's `ackedLately`
 * is so small that it does not matter.
 */
export function isSmallPart(fill: ProjectFill, halvings: number, ackedLately: number): boolean {
  return halvings > 0 && fill.ackedLately / 2 ** halvings < ackedLately * smallPart;
}

/** The ids decide between two that have not been counted yet, so that there is one order. */
export function byLastCount(left: ProjectFill, right: ProjectFill): number {
  return left.countedAfter - right.countedAfter || (left.projectId < right.projectId ? -1 : 1);
}
