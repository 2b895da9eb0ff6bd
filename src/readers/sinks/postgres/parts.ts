// The parts of the table of events: one for each day on which streams stored some. A day may also
// be in a part that the user has made, moved or renamed, and a table of the part's name may be one
// that the user has taken out of it.

import { type Client, DatabaseError } from "pg";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";

/** Whether there is a table of the name, and whether it is a part of the events. */
const partSql = `SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT FROM pg_inherits
  WHERE inhrelid = to_regclass($1) AND inhparent = to_regclass('events'))`;
/** Another part has the day, or some of it; the default part has rows of it. */
const isElsewhere: ReadonlySet<string | undefined> = new Set(["42P17", "23514"]);

/**
 * Sees that events which were stored on a day, such as 2026-11-22, have a part to go to. Called
 * within a transaction.
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
  // In this way neither who reads the other parts waits, nor do we for them. A part must have what
  // the user may have added to the table; indexes and triggers come to it by themselves.
  return [
    `CREATE TABLE ${part}
      (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE)`,
    `ALTER TABLE events ATTACH PARTITION ${part}
      FOR VALUES FROM ('${day} 00:00:00+00') TO ('${next} 00:00:00+00')`,
  ];
}
