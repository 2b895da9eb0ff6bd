// Checks that the columns of the table of events have the types in whose binary form they are
// copied. With another type, the server would reject every event. Runs when the table is opened,
// and again when the server rejects an event, because a user may have altered the table since.

import type { Client } from "pg";
import { StoreError } from "../../../platform/base/store-error.ts";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { eventTypes } from "./tables.ts";

/**
 * Finds the first column with a wrong type. All string types (S) have the same binary form, which
 * an enum (E) accepts as its label. The type `name` is excluded because it truncates a text. Both
 * kinds of timestamp have the same form. A domain has the form of its base type, which may be a
 * domain as well.
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

/**
 * Checks `columns`, the columns that are copied. Rejects with a StoreError that names the first
 * column with a wrong type.
 */
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
