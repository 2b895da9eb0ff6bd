// How many rows a store keeps and reads of what would grow with every event, for both databases.

import type { Value } from "../../base/table.ts";

/** The newest rejections of each project are kept, and up to `rejectedTrim` more. */
export const rejectedKept = 10_000;
/** Older rejections are deleted once per this many new ones: a deletion costs more than a row. */
const rejectedTrim = 1_000;

/** Runs that are kept apart. Older ones become one a stream: their order is forgotten. */
const runsKept = 100_000;

/** What the properties of rows that are looked up together may come to. */
export const lookupBytesMax = 32 * 1_048_576;

/** Links that a person is shown with: the oldest ones. */
export const linksMax = 10_000;
/** Links that are read to find them, of those that name an id on one side. */
export const linksReadMax = 100_000;

/** How many runs come before older ones are looked for again. */
const runsAtOnce = 10_000;

/** Makes room in the outbox. The parameter, in the database's own form, says how many stay. */
export function trimOutboxSql(parameter: string): string {
  return `DELETE FROM outbox
    WHERE id <= (SELECT id FROM outbox ORDER BY id DESC LIMIT 1 OFFSET ${parameter})`;
}

/** `total`: how many rejections the project ever had, with the `added` ones. */
export function isTrimDue(total: number, added: number): boolean {
  const isCrossed = Math.floor(total / rejectedTrim) > Math.floor((total - added) / rejectedTrim);
  return total > rejectedKept && isCrossed;
}

/** How many rows there are of each project; the project is the first value of a row. */
export function rowsOfProjects(values: readonly Value[], width: number): Map<string, number> {
  const rows = new Map<string, number>();
  for (let at = 0; at < values.length; at += width) {
    const projectId = values[at] as string;
    rows.set(projectId, (rows.get(projectId) ?? 0) + 1);
  }
  return rows;
}

/** The last of the runs that are to become one a stream, if that is due; ids are counted up. */
export function runsToFold(lastId: number, added: number): number | undefined {
  const isDue = Math.floor(lastId / runsAtOnce) > Math.floor((lastId - added) / runsAtOnce);
  return isDue && lastId > runsKept ? lastId - runsKept : undefined;
}

/**
 * Replaces the runs up to an id by one for each stream and epoch. Which messages were applied stays
 * known; in which order the streams took turns does not.
 */
export function foldRunsSql(id: number): readonly string[] {
  const last = `(SELECT max(id) FROM runs WHERE id <= ${id} GROUP BY stream, epoch)`;
  return [
    `UPDATE runs SET from_sequence = (SELECT min(o.from_sequence) FROM runs AS o
       WHERE o.id <= ${id} AND o.stream = runs.stream AND o.epoch = runs.epoch)
     WHERE id IN ${last}`,
    `DELETE FROM runs WHERE id <= ${id} AND id NOT IN ${last}`,
  ];
}
