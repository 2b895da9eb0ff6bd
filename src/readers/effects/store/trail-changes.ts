import type { Position } from "../types.ts";

type Trail = Position["trail"];

interface TrailChanges {
  readonly removed: readonly number[];
  readonly added: Trail;
}

/**
 * Returns the difference between two trails that ascend by sequence. A trail has up to 1,000
 * entries and is part of every commit, so only the difference is written.
 */
export function trailChanges(before: Trail, after: Trail): TrailChanges {
  const removed: number[] = [];
  const added: Trail[number][] = [];
  let at = 0;
  for (const entry of after) {
    while (at < before.length && before[at]!.sequence < entry.sequence)
      removed.push(before[at++]!.sequence);
    const old = before[at];
    if (old?.sequence !== entry.sequence) added.push(entry);
    else {
      if (old.messageId !== entry.messageId) added.push(entry);
      at++;
    }
  }
  while (at < before.length) removed.push(before[at++]!.sequence);
  return { removed, added };
}
