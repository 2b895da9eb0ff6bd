// Computes the difference between a position's trail of message ids and the previously committed
// trail. A trail has up to 1,000 entries and is part of every commit, so only the difference is
// written.

import type { Position } from "../types.ts";

type Trail = Position["trail"];

interface TrailChanges {
  /** Sequences of the removed trail entries. */
  readonly removed: readonly number[];
  readonly added: Trail;
}

/**
 * Returns the difference between two trails, which must ascend by sequence. An entry whose message
 * id has changed is only in `added`.
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
