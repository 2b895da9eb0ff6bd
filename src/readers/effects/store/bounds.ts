// How many rows a store keeps and reads of what would grow with every event, for both databases.

import type { Value } from "../../../platform/base/table.ts";

/** The newest rejections of each project are kept, and up to `rejectedTrim` more. */
export const rejectedKept = 10_000;
/** Older rejections are deleted once per this many new ones: a deletion costs more than a row. */
const rejectedTrim = 1_000;

/** What the properties of rows that are looked up together may come to. */
export const lookupBytesMax = 32 * 1_048_576;

/** Links that a person is shown with: the oldest ones. */
export const linksMax = 10_000;
/** Links that are read to find them, of those that name an id on one side. */
export const linksReadMax = 100_000;

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
