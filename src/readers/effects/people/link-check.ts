// Whether two ids may become one person. Says why not in the closed list of outcomes, and changes
// nothing. The order of the checks is part of what is promised: the first reason that holds is
// told.

import type { LinkKind, LinkOutcome } from "../types.ts";

/** One of two persons that are to be one; an id that has no row yet is a person of one id. */
export interface LinkSide {
  readonly known: boolean;
  readonly idsTotal: number;
}

/** Says it for two persons with legal ids. An identify's target counts as known already. */
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
