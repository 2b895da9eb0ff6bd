import type { ClientBase } from "pg";
import type { Table, Value } from "../../../../platform/base/table.ts";
import { columnsSql } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import type { Page, PageOf } from "../port.ts";

interface PageQuery {
  readonly table: Table;
  /** May use $1 (the project) and `values`, which start at $4. */
  readonly where: string;
  readonly key: string;
  readonly projectId: string;
  readonly values: readonly Value[];
}

/** Measuring a row requires reading all its properties. */
const firstRows = 16;

/**
 * Yields rows after the key `after`, up to one more than the limit. Each query reads at most twice
 * as many rows as the previous one, because a few large rows fill a page.
 */
export async function* pageRows(
  client: ClientBase,
  query: PageQuery,
  { after, limit, bytesMax }: Page,
): AsyncGenerator<Value[]> {
  const { table, key, projectId, values } = query;
  const at = table.columns.indexOf(key);
  let last: Value = after ?? null;
  let left = limit + 1;
  for (let size = firstRows; left > 0; size *= 2) {
    const wanted = Math.min(size, left);
    const from = last === null ? [] : [last];
    const sql = pageSql(query, last === null ? undefined : `$${4 + values.length}`);
    const rows = await selectRows(client, sql, [projectId, wanted, bytesMax, ...values, ...from]);
    yield* rows;
    if (rows.length < wanted) return;
    left -= wanted;
    last = rows.at(-1)![at]!;
  }
}

function pageSql({ table, where, key }: PageQuery, after: string | undefined): string {
  const names = columnsSql(table.columns);
  const window = `ORDER BY "${key}" ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING`;
  const behind = after === undefined ? "" : ` AND "${key}" > ${after}`;
  return `SELECT ${names} FROM (
      SELECT ${names}, coalesce(sum(chars) OVER (${window}), 0) AS before_last FROM (
        SELECT ${names}, char_length(coalesce(properties::text, '{}')) AS chars
        FROM ${table.name} WHERE ${where}${behind} ORDER BY "${key}" LIMIT $2
      ) AS rows
    ) AS counted WHERE before_last <= $3 ORDER BY "${key}"`;
}

/** `rows` has one more row than the limit if more rows exist. */
export async function cutPage<Result>(
  rows: Iterable<Value[]> | AsyncIterable<Value[]>,
  { limit, bytesMax }: Pick<Page, "limit" | "bytesMax">,
  read: (row: Value[]) => Promise<{ result: Result; bytes: number; key: string }>,
): Promise<PageOf<Result>> {
  const results: Result[] = [];
  let next: string | undefined;
  let sum = 0;
  for await (const row of rows) {
    if (results.length > 0 && results.length >= limit) return { results, next };
    const { result, bytes, key } = await read(row);
    sum += bytes;
    if (results.length > 0 && sum > bytesMax) return { results, next };
    results.push(result);
    next = key;
  }
  return { results, next: undefined };
}
