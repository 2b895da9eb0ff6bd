// Checks the types of the columns that are copied in binary form. A user may alter the table at any
// time, so this also runs when the server rejects an event.

import type { Client } from "pg";
import { StoreError } from "../../../platform/base/store-error.ts";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { eventTypes } from "./tables.ts";

/**
 * Finds the first column with a wrong type. String types (S) and enums (E) share a binary form,
 * except `name`, which truncates. Timestamps share one too. A domain has that of its base type.
 */
const otherTypeSql = `WITH RECURSIVE based AS (
    SELECT attnum, attname, wanted, format_type(atttypid, atttypmod) AS found, atttypid AS base
    FROM unnest($2::text[], $3::text[]) AS expected (name, wanted)
    JOIN pg_attribute ON attrelid = to_regclass($1) AND attname = name AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, wanted, found, typbasetype
    FROM based JOIN pg_type ON oid = base WHERE typtype = 'd')
  SELECT attname, wanted, found FROM based JOIN pg_type ON oid = base
  WHERE typtype <> 'd' AND NOT (CASE wanted
    WHEN 'text' THEN typcategory IN ('S', 'E') AND base <> 'name'::regtype
    WHEN 'timestamptz' THEN base IN ('timestamptz'::regtype, 'timestamp'::regtype)
    ELSE base = to_regtype(wanted) END)
  ORDER BY attnum LIMIT 1`;

/** Rejects with a StoreError that names the first column with a wrong type. */
export async function checkColumnTypes(
  client: Client,
  schema: string,
  columns: readonly string[],
): Promise<void> {
  const types = columns.map((name) => eventTypes.get(name) ?? null);
  const values = [`"${schema}".events`, arrayOf(columns), arrayOf(types)];
  const [row] = await selectRows(client, otherTypeSql, values);
  if (row === undefined) return;
  const [column, wanted, found] = row;
  throw new StoreError(
    `write events into PostgreSQL: the column ${column} of ${schema}.events is ${found}, and must be ${wanted}: change it back, or add a separate column`,
  );
}
