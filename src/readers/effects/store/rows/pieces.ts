// A commit in pieces, each of which is handed over in one turn of the event loop: all of it at once
// would leave the process deaf for so long. The database writes them in one transaction.

import type { Commit } from "../../types.ts";
import { inOrderOfUuids } from "./flat-commit.ts";

/** Characters of the properties in a piece that has more than one row. */
const pieceCharsMax = 2_097_152;

export const noRows: Omit<Commit, "after" | "number" | "isPart"> = {
  ...{
    positions: [],
    frames: { live: 0, historical: 0 },
    members: [],
    links: [],
    groups: [],
    groupTypes: [],
  },
  ...{
    groupMembers: [],
    largeProperties: [],
    rejected: [],
    usage: [],
    activeIds: [],
    spikes: [],
    activity: [],
  },
  ...{ incidents: [], outbox: [] },
};

/** Lists of which each may have as many rows as events have brought. */
const longLists = ["members", "groups", "links", "groupMembers", "rejected"] as const;

/**
 * The pieces in the order in which they are to be written, with so many rows of one kind at most.
 * Each but the last `isPart`; the last is what the commit is.
 */
export function* piecesOf(commit: Commit, rowsMax: number): Generator<Commit> {
  const { after, number } = commit;
  const last = { ...commit, members: inOrderOfUuids(commit.members) };
  for (const list of longLists) {
    for (;;) {
      const count = rowsOfPiece(last[list], rowsMax);
      if (count === last[list].length) break;
      const rows = last[list].slice(0, count);
      Object.assign(last, { [list]: last[list].slice(count) });
      yield { ...noRows, after, number, isPart: true, [list]: rows };
    }
  }
  yield last;
}

/** How many of the rows fit into a piece: all there are, or one at least. */
function rowsOfPiece(rows: Commit[(typeof longLists)[number]], rowsMax: number): number {
  let chars = 0;
  let count = 0;
  for (; count < rows.length && count < rowsMax; count++) {
    const row = rows[count]!;
    const properties =
      "person" in row ? row.person?.properties : "properties" in row ? row.properties : undefined;
    chars += properties === undefined ? 0 : properties.json.length + properties.state.length;
    if (chars > pieceCharsMax && count > 0) break;
  }
  return count;
}
