import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { MovedError } from "../../../../src/readers/sinks/sink-target.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { sinkSchema as schema } from "../../../kit/sink-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { batchOf, sinkRecordOf } from "./postgres-kit.ts";

const postgres = await postgresForFile();
const table = `${schema}.events`;
const todayMs = Date.UTC(2026, 10, 22, 12);

function targetAt(url: string, withPerson = false): PostgresTarget {
  const target = new PostgresTarget({ url, schema, withPerson });
  onTestFinished(() => target.close());
  return target;
}

async function locksAt(url: string): Promise<Record<string, unknown>[]> {
  return await asked(
    url,
    `SELECT relation::regclass::text, mode FROM pg_locks
      JOIN pg_stat_activity USING (pid)
      WHERE application_name = 'penstock sink' AND datname = current_database()
        AND locktype = 'relation'`,
  );
}

test("a failed check of a column's type leaves no PostgreSQL lock", async () => {
  const url = await newDatabase(postgres);
  const first = targetAt(url);
  await first.open();
  await first.close();
  await asked(url, `ALTER TABLE ${table} ALTER ip TYPE inet USING ip::inet`);
  const reader = new Client({ connectionString: url });
  await reader.connect();
  onTestFinished(() => reader.end());
  await reader.query(`BEGIN; LOCK TABLE ${table} IN ACCESS SHARE MODE`);
  const target = targetAt(url, true);
  await expect(target.open()).rejects.toThrow("the column ip");
  expect(await locksAt(url)).toEqual([]);
});

test("a failed write to an altered column leaves no PostgreSQL lock", async () => {
  const url = await newDatabase(postgres);
  const target = targetAt(url);
  await target.open();
  await asked(url, `ALTER TABLE ${table} ALTER properties TYPE json`);
  const batch = batchOf([sinkRecordOf(1, {}, todayMs)], 0);
  await expect(target.write(batch)).rejects.toThrow("the column properties");
  expect(await locksAt(url)).toEqual([]);
});

test("a write that fails because of another writer leaves no PostgreSQL lock", async () => {
  const url = await newDatabase(postgres);
  const target = targetAt(url);
  await target.open();
  await target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0));
  await expect(target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0))).rejects.toThrow(
    MovedError,
  );
  expect(await locksAt(url)).toEqual([]);
});
