import type { Value } from "../../../platform/base/table.ts";

/** Up to `rejectedTrim` older ones may remain. */
export const rejectedRetained = 10_000;
/**
 * Older rejections are deleted once per this number, because a deletion takes longer than an
 * insertion.
 */
const rejectedTrim = 1_000;

/** Maximum bytes of the properties of rows that are looked up together. */
export const lookupBytesMax = 32 * 1_048_576;

/** The oldest links are returned. */
export const linksMax = 10_000;
/** Per side of the link. */
export const linksReadMax = 100_000;

/** Deletes the oldest rows. `parameter` is the placeholder for the number of rows to retain. */
export function trimOutboxSql(parameter: string): string {
  return `DELETE FROM outbox
    WHERE id <= (SELECT id FROM outbox ORDER BY id DESC LIMIT 1 OFFSET ${parameter})`;
}

/** `total` is the number of all rejections of the project, including the `added` ones. */
export function isTrimDue(total: number, added: number): boolean {
  const isCrossed = Math.floor(total / rejectedTrim) > Math.floor((total - added) / rejectedTrim);
  return total > rejectedRetained && isCrossed;
}

/** The project is the first value of a row. */
export function rowsOfProjects(values: readonly Value[], width: number): Map<string, number> {
  const rows = new Map<string, number>();
  for (let at = 0; at < values.length; at += width) {
    const projectId = values[at] as string;
    rows.set(projectId, (rows.get(projectId) ?? 0) + 1);
  }
  return rows;
}
