// A pooler in transaction mode changes the session between transactions. A trigger simulates this
// here.

import { expect, onTestFinished, test } from "vitest";
import { readAddress } from "../../../../src/platform/postgres/address.ts";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { SinkSession } from "../../../../src/readers/sinks/postgres/session.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { batchOf, sinkRecordOf } from "./postgres-kit.ts";

const postgres = await postgresForFile();
const pooler = "a pooler in transaction mode";
const todayMs = Date.UTC(2026, 10, 22, 12);

async function opened(url: string, schema: string): Promise<PostgresTarget> {
  const target = new PostgresTarget({ url, schema });
  onTestFinished(() => target.close());
  await target.open();
  return target;
}

async function changeSession(url: string, settings: Record<string, string>): Promise<void> {
  const changes = Object.entries(settings).map(
    ([name, value]) => `PERFORM set_config('${name}', '${value}', false);`,
  );
  await asked(
    url,
    `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN ${changes.join(" ")} RETURN new; END $$;
    CREATE CONSTRAINT TRIGGER change AFTER INSERT ON one.positions
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION change()`,
  );
}

function countsAt(url: string): Promise<Record<string, unknown>[]> {
  return asked(
    url,
    `SELECT (SELECT count(*)::int FROM one.events) AS one,
      (SELECT count(*)::int FROM two.events) AS two`,
  );
}

test("a pooled PostgreSQL sink writes nothing in another sink's session", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url, "one");
  await opened(url, "two");
  await changeSession(url, { "penstock.session": "of another", search_path: "two" });
  await target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0));
  const next = batchOf([sinkRecordOf(2, {}, todayMs)], 1);
  await expect(target.write(next)).rejects.toThrow(pooler);
  expect(await countsAt(url)).toEqual([{ one: 1, two: 0 }]);
  await target.open();
  await target.write(next);
  expect(await countsAt(url)).toEqual([{ one: 2, two: 0 }]);
});

test("a pooled PostgreSQL sink does not open its target in another session", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url, "one");
  await changeSession(url, { "penstock.session": "" });
  await target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0));
  await expect(target.open()).rejects.toThrow(pooler);
  expect(await target.open()).toMatchObject([{ sequence: 1 }]);
});

test("the PostgreSQL sink writes to its schema despite another search path", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url, "one");
  await opened(url, "two");
  await changeSession(url, { search_path: "two" });
  await target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0));
  await target.write(batchOf([sinkRecordOf(2, {}, todayMs)], 1));
  expect(await countsAt(url)).toEqual([{ one: 2, two: 0 }]);
});

async function pooled() {
  const address = readAddress(await newDatabase(postgres));
  const [session, holder] = [new SinkSession(address, "one"), new SinkSession(address, "one")];
  onTestFinished(async () => {
    for (const one of [session, holder]) await one.close();
  });
  const begun = session.run("write", async (client) => {
    await client.query("RESET ALL");
    await session.begin(client);
  });
  await expect(begun).rejects.toThrow(pooler);
  return { session, holder, work: async (): Promise<string> => "done" };
}

test("a pooled PostgreSQL sink blames the pooler instead of another sink", async () => {
  const { session, holder, work } = await pooled();
  await expect.poll(() => holder.run("open", work).catch(String)).toBe("done");
  await expect(session.run("open", work)).rejects.toThrow(pooler);
});

test("the PostgreSQL sink reports another sink only after it held the lock", async () => {
  const { session, holder, work } = await pooled();
  await expect.poll(() => session.run("open", work).catch(String)).toBe("done");
  const lost = session.run("write", async () => {
    throw new Error("the connection is lost");
  });
  await expect(lost).rejects.toThrow("is lost");
  await expect.poll(() => holder.run("open", work).catch(String)).toBe("done");
  await expect(session.run("open", work)).rejects.toThrow("another sink writes");
});
