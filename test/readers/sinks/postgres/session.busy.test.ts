import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { sinkSchema as schema } from "../../../kit/sink-events.ts";
import { batchOf, sinkRecordOf } from "./postgres-kit.ts";

const { url } = await postgresForFile();

test("the PostgreSQL sink is not reopened while a late write is still running", async () => {
  const target = new PostgresTarget({ url, schema });
  onTestFinished(() => target.close());
  await target.open();
  const holder = new Client({ connectionString: url });
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query(`BEGIN; LOCK TABLE ${schema}.event_keys`);
  const writing = target.write(batchOf([sinkRecordOf(1, {}, Date.UTC(2026, 10, 22))], 0));
  const lateSql = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  await expect.poll(() => asked(url, lateSql)).toEqual([{ n: 1 }]);
  const opening = target.open();
  opening.catch(() => {});
  await holder.query("COMMIT");
  const outcome = await writing.catch((error: unknown) => error);
  await expect(opening).rejects.toThrow("another write is still running");
  expect(outcome).toMatchObject({ written: 1 });
  expect(await asked(url, `SELECT sequence::int FROM ${schema}.positions`)).toEqual([
    { sequence: 1 },
  ]);
  expect(await target.open()).toMatchObject([{ sequence: 1 }]);
});
