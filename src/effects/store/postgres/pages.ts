// Pages of rows with properties: found by the last key, never by counting rows, and cut where their
// properties come to too much.

import type { Table, Value } from "../../../base/table.ts";
import { columnsSql } from "../../../postgres/arrays.ts";
import type { Page, PageOf } from "../port.ts";

interface PageQuery {
  readonly table: Table;
  /** May use $1 and, for the last key, $4. */
  readonly where: string;
  readonly key: string;
}

/**
 * At most $2 rows, and of those that come after more than $3 characters of properties only the
 * first: the others are not even sent. `cutPage` has the last word.
 */
export function pageSql({ table, where, key }: PageQuery): string {
  const names = columnsSql(table.columns);
  const window = `ORDER BY "${key}" ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING`;
  return `SELECT ${names} FROM (
      SELECT ${names}, coalesce(sum(chars) OVER (${window}), 0) AS before_last FROM (
        SELECT ${names}, char_length(coalesce(properties::text, '{}')) AS chars
        FROM ${table.name} WHERE ${where} ORDER BY "${key}" LIMIT $2
      ) AS rows
    ) AS counted WHERE before_last <= $3 ORDER BY "${key}"`;
}

/** `rows`: one more than the limit, if there are more. */
export async function cutPage<Result>(
  rows: readonly Value[][],
  { limit, bytesMax }: Pick<Page, "limit" | "bytesMax">,
  read: (row: Value[]) => Promise<{ result: Result; bytes: number; key: string }>,
): Promise<PageOf<Result>> {
  const results: Result[] = [];
  let next: string | undefined;
  let sum = 0;
  for (const row of rows) {
    if (results.length > 0 && results.length >= limit) return { results, next };
    const { result, bytes, key } = await read(row);
    sum += bytes;
    if (results.length > 0 && sum > bytesMax) return { results, next };
    results.push(result);
    next = key;
  }
  return { results, next: undefined };
}
