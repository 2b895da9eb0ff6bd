import type { Commit } from "../../types.ts";
import { inOrderOfUuids } from "./flat-commit.ts";

/** In a piece with more than one row. */
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

/** The lists without a maximum length. */
const longLists = ["members", "groups", "links", "groupMembers", "rejected"] as const;

/**
 * Splits a commit into pieces of at most `rowsMax` rows of one kind, because converting a whole
 * commit would block the event loop. All pieces except the last have `isPart`.
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

/** At least one if there are any. */
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
