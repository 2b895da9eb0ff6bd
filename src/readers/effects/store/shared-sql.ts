// Limits, queries and pages that both databases share.

import type { Value } from "../../../platform/base/table.ts";
import type { SpikeRow } from "../types.ts";
import type { Page, PageOf } from "./port.ts";

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

const projectsMax = 1_000;

/** Jumps from one project to the next instead of reading all rows. */
export const projectsSql = `WITH RECURSIVE found (project_id) AS (
    SELECT min(project_id) FROM usage_daily
    UNION ALL
    SELECT (
      SELECT min(u.project_id) FROM usage_daily AS u WHERE u.project_id > found.project_id
    ) FROM found WHERE found.project_id IS NOT NULL
  )
  SELECT project_id FROM found WHERE project_id IS NOT NULL LIMIT ${projectsMax}`;

/** The page has spikes that started after this time, or at this time with a greater subject. */
export function spikesBegin(
  fromMs: number,
  { after }: Pick<Page, "after">,
): readonly [startedAtMs: number, subject: string] {
  if (after === undefined) return [fromMs, ""];
  const end = after.indexOf(" ");
  const startedAtMs = /^-?\d{1,15} /.test(after) ? Number(after.slice(0, end)) : Number.NaN;
  // A cursor that no page has returned leads to an empty page.
  if (Number.isNaN(startedAtMs)) return [Number.MAX_SAFE_INTEGER, ""];
  return startedAtMs < fromMs ? [fromMs, ""] : [startedAtMs, after.slice(end + 1)];
}

/** `rows` has one more row than the limit if more rows exist. */
export function spikePage(
  rows: readonly SpikeRow[],
  { limit }: Pick<Page, "limit">,
): PageOf<SpikeRow> {
  const results = rows.slice(0, limit);
  const last = results.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { results, next: hasMore ? `${last.startedAtMs} ${last.subject}` : undefined };
}
