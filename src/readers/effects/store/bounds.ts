// Limits for rows whose number would grow with every event, for both databases.

import type { Value } from "../../../platform/base/table.ts";

/** Number of newest rejections kept per project, plus up to `rejectedTrim`. */
export const rejectedRetained = 10_000;
/** Older rejections are deleted once per this many new ones: a deletion costs more than a row. */
const rejectedTrim = 1_000;

/** Maximum total size of the properties of rows that are looked up together. */
export const lookupBytesMax = 32 * 1_048_576;

/** Maximum number of links shown for a person: the oldest ones. */
export const linksMax = 10_000;
/** Maximum number of links read to find them, per side of the link. */
export const linksReadMax = 100_000;

/**
 * Deletes the oldest rows of the outbox. The parameter, in the database's own form, is the number
 * that stays.
 */
export function trimOutboxSql(parameter: string): string {
  return `DELETE FROM outbox
    WHERE id <= (SELECT id FROM outbox ORDER BY id DESC LIMIT 1 OFFSET ${parameter})`;
}

/** `total`: number of rejections the project ever had, including the `added` ones. */
export function isTrimDue(total: number, added: number): boolean {
  const isCrossed = Math.floor(total / rejectedTrim) > Math.floor((total - added) / rejectedTrim);
  return total > rejectedRetained && isCrossed;
}

/** Number of rows per project; the project is the first value of a row. */
export function rowsOfProjects(values: readonly Value[], width: number): Map<string, number> {
  const rows = new Map<string, number>();
  for (let at = 0; at < values.length; at += width) {
    const projectId = values[at] as string;
    rows.set(projectId, (rows.get(projectId) ?? 0) + 1);
  }
  return rows;
}
