// The partitions of the table of events: one for each day on which streams stored events. A day may
// also be in a partition that the user has created, moved or renamed. A table with the partition's
// name may be one that the user has detached.

import { type Client, DatabaseError } from "pg";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";

/** Queries whether a table with the name exists, and whether it is a partition of the events. */
const partSql = `SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT FROM pg_inherits
  WHERE inhrelid = to_regclass($1) AND inhparent = to_regclass('events'))`;
/**
 * Codes of the errors that another partition covers the day or a part of it, or that the default
 * partition has rows of the day.
 */
const isElsewhere: ReadonlySet<string | undefined> = new Set(["42P17", "23514"]);

/**
 * Creates the partition for events stored on `day`, such as 2026-11-22, if the day has none. Must
 * be called in a transaction.
 */
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
  // Attaching a table does not block readers of the other partitions, and does not wait for them. A
  // partition must have what the user may have added to the table. Indexes and triggers are added
  // automatically.
  return [
    `CREATE TABLE ${part}
      (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE)`,
    `ALTER TABLE events ATTACH PARTITION ${part}
      FOR VALUES FROM ('${day} 00:00:00+00') TO ('${next} 00:00:00+00')`,
  ];
}
