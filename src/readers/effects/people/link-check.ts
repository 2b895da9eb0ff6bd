// Checks whether two ids may become one person. Returns an outcome from the closed list, and
// changes nothing. The order of the checks is part of the contract: the first matching reason is
// returned.

import type { LinkKind, LinkOutcome } from "../types.ts";

/** One of two persons to merge; an id without a row counts as a person with one id. */
export interface LinkSide {
  readonly known: boolean;
  readonly idsTotal: number;
}

/**
 * The outcome for two persons with legal ids. The target of an identify counts as known already.
 */
export function outcomeOfTwo(
  kind: LinkKind,
  sides: { from: LinkSide; to: LinkSide },
  idsMax: number,
): LinkOutcome {
  const { from, to } = sides;
  const isTargetKnown = kind === "identify" || to.known;
  if (kind !== "merge" && from.known && isTargetKnown) return "refused_both_known";
  return from.idsTotal + to.idsTotal > idsMax ? "refused_cap" : "merged";
}
