// The partitions of the events, one for each day of the stream's time. The user may have created,
// moved, renamed or detached a partition.

import { type Client, DatabaseError } from "pg";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";

const partSql = `SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT FROM pg_inherits
  WHERE inhrelid = to_regclass($1) AND inhparent = to_regclass('events'))`;
/** Another partition covers the day, or the default partition has rows of it. */
const isElsewhere: ReadonlySet<string | undefined> = new Set(["42P17", "23514"]);

/** Creates the partition of the day, such as 2026-11-22, if it is missing, within a transaction. */
export async function makePart(client: Client, day: string): Promise<void> {
  const first = `events_${day.replaceAll("-", "")}`;
  let part = first;
  for (let nth = 2; ; nth++) {
    const [row] = await selectRows(client, partSql, [part]);
    const [isThere, isPart] = row ?? [];
    if (isPart === 1) return;
    if (isThere !== 1) break;
    part = `${first}_${nth}`;
  }
  await client.query("SAVEPOINT before_part");
  try {
    for (const sql of statements(part, day)) await client.query(sql);
  } catch (error) {
    if (!(error instanceof DatabaseError && isElsewhere.has(error.code))) throw error;
    await client.query("ROLLBACK TO SAVEPOINT before_part");
  }
  await client.query("RELEASE SAVEPOINT before_part");
}

function statements(part: string, day: string): string[] {
  const next = dayOf(Date.parse(day) + dayMs);
  // Attaching a table does not block readers of other partitions. The table must have what the user
  // may have added; indexes and triggers follow by themselves.
  return [
    `CREATE TABLE ${part}
      (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE)`,
    `ALTER TABLE events ATTACH PARTITION ${part}
      FOR VALUES FROM ('${day} 00:00:00+00') TO ('${next} 00:00:00+00')`,
  ];
}
