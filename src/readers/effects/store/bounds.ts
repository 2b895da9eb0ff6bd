// Limits the rows whose number would grow with every event, for both databases.

import type { Value } from "../../../platform/base/table.ts";

/**
 * Number of newest rejections that are retained per project. Up to `rejectedTrim` older ones may
 * remain.
 */
export const rejectedRetained = 10_000;
/**
 * Number of new rejections of a project after which older ones are deleted. A deletion takes longer
 * than an insertion.
 */
const rejectedTrim = 1_000;

/** Maximum total bytes of the properties of rows that are looked up together. */
export const lookupBytesMax = 32 * 1_048_576;

/** Maximum number of links that are returned for a person. The oldest links are returned. */
export const linksMax = 10_000;
/** Maximum number of links that are read for a person, per side of the link. */
export const linksReadMax = 100_000;

/**
 * Returns the statement that deletes the oldest outbox rows. `parameter` is a placeholder in the
 * database's own syntax, for the number of rows to retain.
 */
export function trimOutboxSql(parameter: string): string {
  return `DELETE FROM outbox
    WHERE id <= (SELECT id FROM outbox ORDER BY id DESC LIMIT 1 OFFSET ${parameter})`;
}

/**
 * Returns whether old rejections of a project must be deleted. `total` is the number of all
 * rejections of the project, including the `added` ones.
 */
export function isTrimDue(total: number, added: number): boolean {
  const isCrossed = Math.floor(total / rejectedTrim) > Math.floor((total - added) / rejectedTrim);
  return total > rejectedRetained && isCrossed;
}

/** Returns the number of rows per project. The project is the first value of a row. */
export function rowsOfProjects(values: readonly Value[], width: number): Map<string, number> {
  const rows = new Map<string, number>();
  for (let at = 0; at < values.length; at += width) {
    const projectId = values[at] as string;
    rows.set(projectId, (rows.get(projectId) ?? 0) + 1);
  }
  return rows;
}
