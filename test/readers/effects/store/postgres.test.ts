import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { StoreError } from "../../../../src/platform/base/store-error.ts";
import { FencedError } from "../../../../src/readers/effects/store/port.ts";
import { PostgresReader } from "../../../../src/readers/effects/store/postgres/reader.ts";
import { PostgresStore } from "../../../../src/readers/effects/store/postgres/store.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { newDatabase } from "./postgres-rig.ts";
import { commitOf, mergedRow, personRow, positionRow, project } from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";
import { storeSuite } from "./store-suite.ts";

const server = await postgresForFile({ durable: true });
const suiteUrl = await newDatabase(server);

/** All tests share one database, because emptying it is faster than creating a new one. */
async function openStore(): Promise<StoreRig> {
  const url = suiteUrl;
  const stores: PostgresStore[] = [];
  function another(): PostgresStore {
    const store = new PostgresStore({ url });
    stores.push(store);
    return store;
  }
  const store = another();
  await store.open();
  return {
    store,
    another,
    deleteAll: async (table) => void (await asked(url, `DELETE FROM penstock_effects.${table}`)),
    end: async () => {
      for (const one of stores) await one.close();
      await asked(url, "DROP SCHEMA penstock_effects CASCADE");
    },
  };
}

storeSuite("PostgreSQL", openStore);

async function newStore(): Promise<{ url: string; store: PostgresStore; other: PostgresStore }> {
  const url = await newDatabase(server);
  const [store, other] = [new PostgresStore({ url }), new PostgresStore({ url })];
  onTestFinished(async () => {
    await store.close();
    await other.close();
  });
  await store.open();
  return { url, store, other };
}

const annCommit = commitOf(0, { members: [personRow("ann")], positions: [positionRow(1)] });
const bobCommit = commitOf(1, { members: [personRow("bob")], positions: [positionRow(2)] });

async function untilWaiting(url: string, event: string): Promise<void> {
  const sql = `SELECT count(*)::int AS waiting FROM pg_stat_activity
    WHERE application_name LIKE 'penstock effects %' AND '${event}' IN (wait_event_type, wait_event)`;
  await expect.poll(async () => (await asked(url, sql))[0]).toEqual({ waiting: 1 });
}

async function halfWay(
  url: string,
  store: PostgresStore,
  tables = "outbox",
): Promise<{ outcome: Promise<unknown> }> {
  const locker = new Client({ connectionString: url });
  locker.on("error", () => {});
  await locker.connect();
  onTestFinished(() => locker.end());
  await locker.query(`BEGIN; LOCK TABLE penstock_effects.${tables} IN ACCESS EXCLUSIVE MODE`);
  const outbox = [{ messageId: "m", subject: "s", json: "{}" }];
  const outcome = store.commit({ ...bobCommit, outbox }).catch((error: unknown) => error);
  await untilWaiting(url, "Lock");
  return { outcome };
}

// This test must be the first, because it copies all databases, and each test leaves a database.
test("the PostgreSQL store reports the older commit after a restore", async () => {
  const { store } = await newStore();
  await store.commit(annCommit);
  const copy = await server.copyData();
  await store.lastCommit().catch(() => {});
  await store.commit(bobCommit);
  await server.restoreData(copy);
  await store.lastCommit().catch(() => {});
  expect(await store.lastCommit()).toBe(1);
  const late = store.commit({ ...bobCommit, after: 2, number: 3 });
  await expect(late).rejects.toBeInstanceOf(FencedError);
  expect(await store.positions()).toEqual([positionRow(1)]);
  await store.commit(bobCommit);
  expect(await store.positions()).toEqual([positionRow(2)]);
});

test.each(["stop", "kill"] as const)(
  "the PostgreSQL store fails only the commit during a %s of the server",
  async (how) => {
    const { url, store } = await newStore();
    await store.commit(annCommit);
    const { outcome } = await halfWay(url, store);
    await server[how]();
    expect(await outcome).toBeInstanceOf(StoreError);
    await expect(store.lastCommit()).rejects.toThrow("no server is listening");
    await server.restart();
    expect(await store.lastCommit()).toBe(1);
    expect(await store.members(project, ["ann", "bob"])).toEqual([personRow("ann")]);
    await store.commit(bobCommit);
    expect(await store.positions()).toEqual([positionRow(2)]);
    expect(await store.outbox(9, 0)).toEqual([]);
  },
);

test("the PostgreSQL store finds a commit whose acknowledgement was lost", async () => {
  const { url, store } = await newStore();
  await store.commit(annCommit);
  // A later commit waits for a missing standby after it is completely written.
  await asked(server.url, "ALTER SYSTEM SET synchronous_standby_names = 'missing'");
  await asked(server.url, "SELECT pg_reload_conf()");
  await expect
    .poll(async () => (await asked(url, "SHOW synchronous_standby_names"))[0])
    .toEqual({ synchronous_standby_names: "missing" });
  const outcome = store.commit(bobCommit).catch((error: unknown) => error);
  await untilWaiting(url, "SyncRep");
  await server.kill();
  expect(await outcome).toBeInstanceOf(StoreError);
  await server.restart({ settings: { synchronous_standby_names: "" } });
  await asked(server.url, "ALTER SYSTEM RESET synchronous_standby_names");
  expect(await store.lastCommit()).toBe(2);
  await expect(store.commit(bobCommit)).rejects.toBeInstanceOf(FencedError);
  expect((await store.reader.totals()).persons).toBe(2);
});

test("a writer cannot commit after another writer took its lock", async () => {
  const { url, store, other } = await newStore();
  await store.commit(annCommit);
  const opened = other.open();
  await asked(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'penstock effects %' AND query LIKE 'COMMIT%'`,
  );
  await opened;
  await expect(store.commit(bobCommit)).rejects.toThrow("another `penstock effects` writes to it");
  await other.commit(commitOf(1, { members: [personRow("eve")] }));
  await other.close();
  await expect(store.commit(bobCommit)).rejects.toBeInstanceOf(FencedError);
  expect(await store.lastCommit()).toBe(2);
  expect(await store.members(project, ["bob", "eve"])).toEqual([personRow("eve")]);
});

test("the earlier connection of a writer cannot commit", async () => {
  const direct = await newDatabase(server);
  const relay = await startRelay(server.port);
  const store = new PostgresStore({ url: direct.replace(`:${server.port}/`, `:${relay.port}/`) });
  onTestFinished(() => store.close());
  await store.commit(annCommit);
  const { outcome } = await halfWay(direct, store);
  relay.cut();
  expect(await outcome).toBeInstanceOf(StoreError);
  expect(await store.lastCommit()).toBe(1);
  await asked(
    direct,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE query LIKE 'BEGIN; LOCK%'`,
  );
  await store.commit(bobCommit);
  expect(await store.members(project, ["bob"])).toEqual([personRow("bob")]);
});

test("the PostgreSQL store closes even if the server does not respond", async () => {
  const { url, store, other } = await newStore();
  await store.commit(annCommit);
  await store.reader.totals();
  const { outcome } = await halfWay(url, store, "outbox, penstock_effects.totals");
  const read = store.reader.totals().catch((error: unknown) => error);
  await store.close();
  expect(await outcome).toBeInstanceOf(StoreError);
  expect(await read).toBeInstanceOf(StoreError);
  await expect.poll(() => other.open().then(() => "open", String)).toBe("open");
});

test("a lost connection fails only the read that used it", async () => {
  const direct = await newDatabase(server);
  const relay = await startRelay(server.port);
  const store = new PostgresStore({ url: direct.replace(`:${server.port}/`, `:${relay.port}/`) });
  onTestFinished(() => store.close());
  await store.commit(annCommit);
  const { outcome } = await halfWay(direct, store, "outbox, penstock_effects.totals");
  const read = store.reader.totals().catch((error: unknown) => error);
  const waiting = `SELECT count(*)::int AS waiting FROM pg_stat_activity
    WHERE application_name = 'penstock effects reader' AND wait_event_type = 'Lock'`;
  await expect.poll(async () => (await asked(direct, waiting))[0]).toEqual({ waiting: 1 });
  relay.cut();
  expect(await read).toBeInstanceOf(StoreError);
  expect(await outcome).toBeInstanceOf(StoreError);
  expect(await store.reader.applied()).toMatchObject([{ sequence: 1 }]);
});

async function startRelay(target: number): Promise<{ port: number; cut(): void }> {
  const clients = new Set<Socket>();
  const relay = createServer((client) => {
    const upstream = createConnection({ host: "127.0.0.1", port: target });
    clients.add(client);
    client.on("data", (data) => upstream.write(data)).on("error", () => {});
    upstream.on("data", (data) => client.write(data)).on("error", () => {});
    upstream.on("close", () => client.destroy());
    onTestFinished(() => void upstream.destroy());
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void relay.close());
  return {
    port: (relay.address() as AddressInfo).port,
    cut() {
      for (const client of clients) client.destroy();
    },
  };
}

test("the PostgreSQL store looks up rows by index", async () => {
  const { url, store } = await newStore();
  await asked(
    url,
    `INSERT INTO penstock_effects.members (project_id, uuid, distinct_id, first_ms, first_rank)
      SELECT '${project}', gen_random_uuid(), 'id-' || n, n, 'l' FROM generate_series(1, 20000) n`,
  );
  const ids = Array.from({ length: 500 }, (_, index) => `new-${index}`);
  expect(await store.members(project, ids)).toEqual([]);
  const members = ids.map((id) => mergedRow(id, "ann"));
  await store.commit(commitOf(0, { members: [personRow("ann"), ...members] }));
  await store.close();
  const sql = `SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS rows
    FROM pg_stat_user_tables WHERE relname = 'members'`;
  const [counted] = await asked(url, sql);
  expect(Number(counted?.["rows"])).toBeLessThan(5_000);
});

test("the PostgreSQL store reads only the persons that fit into a page", async () => {
  const { url, store } = await newStore();
  const members = Array.from({ length: 1_000 }, (_, index) => personRow(`id-${index}`));
  await store.commit(commitOf(0, { members }));
  await asked(url, "ANALYZE penstock_effects.members");
  const few = await store.reader.persons(project, { after: undefined, limit: 999, bytesMax: 1 });
  expect(few.results.length).toBe(1);
  await store.close();
  const sql = `SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS rows
    FROM pg_stat_user_tables WHERE relname = 'members'`;
  await expect.poll(async () => Number((await asked(url, sql))[0]?.["rows"])).toBeGreaterThan(0);
  expect(Number((await asked(url, sql))[0]?.["rows"])).toBeLessThan(100);
  const reader = new PostgresReader({ url });
  onTestFinished(() => reader.close());
  const uuids: string[] = [];
  let after: string | undefined = few.next;
  for (let pages = 0; pages === 0 || after !== undefined; pages++) {
    const page = await reader.persons(project, { after, limit: 300, bytesMax: 4_194_304 });
    uuids.push(...page.results.map(({ uuid }) => uuid));
    after = page.next;
  }
  expect(uuids.length).toBe(999);
  expect(uuids).toEqual([...new Set(uuids)].sort());
});
