import { afterAll, expect, onTestFinished, test } from "vitest";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { startPostgres } from "../../../kit/postgres.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { rejectedAt, sinkSchema as schema } from "../../../kit/sink-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { batchOf, sinkRecordOf, stream } from "./postgres-kit.ts";

/** The minimum of PostgreSQL's setting: some hundred locks for all sessions. */
const postgres = await startPostgres({ settings: { max_locks_per_transaction: "10" } });
afterAll(() => postgres.remove());

const dayMs = 86_400_000;

async function opened(url: string): Promise<PostgresTarget> {
  const target = new PostgresTarget({ url, schema });
  onTestFinished(() => target.close());
  await target.open();
  return target;
}

const table = `${schema}.events`;

function triggerOf(raise: string, kind = "TRIGGER", when = "BEFORE INSERT"): string {
  const late = kind === "TRIGGER" ? "" : "DEFERRABLE INITIALLY DEFERRED";
  return `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ DECLARE n int; BEGIN ${raise}; RETURN new; END $$;
    CREATE ${kind} refuse ${when} ON ${table} ${late} FOR EACH ROW
      WHEN (new.properties->>'price' = 'free') EXECUTE FUNCTION refuse()`;
}

test.each([
  ["an index on an expression", `CREATE INDEX ON ${table} (((properties->>'price')::numeric))`],
  ["a constraint", `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`],
  [
    "a generated column",
    `ALTER TABLE ${table} ADD price numeric GENERATED ALWAYS AS ((properties->>'price')::numeric) STORED`,
  ],
  ["a trigger", triggerOf("RAISE 'not free'")],
  ["a trigger with its own error code", triggerOf("RAISE 'not free' USING ERRCODE = 'MY001'")],
  [
    "a trigger with the code of a constraint",
    triggerOf("RAISE 'not free' USING ERRCODE = 'check_violation'"),
  ],
  ["a trigger that asserts", triggerOf("ASSERT false, 'not free'")],
  ["a trigger that finds nothing", triggerOf("SELECT 1 INTO STRICT n WHERE false")],
  ["a trigger at the commit", triggerOf("RAISE 'not free'", "CONSTRAINT TRIGGER", "AFTER INSERT")],
  [
    "a foreign key at the commit",
    `CREATE TABLE ${schema}.prices AS SELECT n::text AS price FROM generate_series(0, 99) AS n;
    ALTER TABLE ${schema}.prices ADD PRIMARY KEY (price);
    ALTER TABLE ${table} ADD price text GENERATED ALWAYS AS (properties->>'price') STORED,
      ADD FOREIGN KEY (price) REFERENCES ${schema}.prices DEFERRABLE INITIALLY DEFERRED`,
  ],
])("the PostgreSQL sink rejects two of forty events for %s", async (_, added) => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  await target.write(batchOf([sinkRecordOf(1, { price: "1" }, todayMs)], 0));
  await asked(url, added);
  for (const [nth, storedAtMs] of [todayMs, todayMs + dayMs].entries()) {
    const from = 2 + 40 * nth;
    const events = Array.from({ length: 40 }, (_, at) =>
      sinkRecordOf(from + at, { price: at === 7 || at === 31 ? "free" : String(at) }, storedAtMs),
    );
    const outcome = await target.write(batchOf(events, from - 1));
    expect(outcome).toEqual({ written: 38, duplicates: 0, refused: 2 });
  }
  expect(await asked(url, `SELECT count(*)::int AS n FROM ${table}`)).toEqual([{ n: 77 }]);
  expect(await rejectedAt(url)).toEqual({ count: 4, places: 4 });
});

test.each([
  [
    "a domain that is never null",
    `CREATE DOMAIN place AS text NOT NULL; ALTER TABLE ${table} ALTER ip TYPE place`,
  ],
  ["a type of short texts", `ALTER TABLE ${table} ALTER event TYPE varchar(20)`],
])("the PostgreSQL sink rejects only the events that %s does not accept", async (_, added) => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, added);
  await target.open();
  const todayMs = Date.UTC(2026, 10, 22, 12);
  const good = sinkRecordOf(1, {}, todayMs);
  const origin = { ...good.origin, ip: "" };
  const bad = { ...sinkRecordOf(2, {}, todayMs), event: "long ".repeat(20), origin };
  const outcome = await target.write(batchOf([good, bad], 0));
  expect(outcome).toEqual({ written: 1, duplicates: 0, refused: 1 });
});

test("the PostgreSQL sink writes the first accepted event of each uuid", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  const digits = Buffer.from('{"price":1e9999}');
  const events = ["free", "\0", "free", "1", "free", "2"].map((price, at) => ({
    ...sinkRecordOf(2 + at, { price }, todayMs),
    uuid: sinkRecordOf(2, {}, todayMs).uuid,
  }));
  const all = [
    { ...events[0]!, sequence: 1, properties: digits, text: digits },
    ...events,
    sinkRecordOf(8, { price: "3" }, todayMs),
  ];
  const outcome = await target.write(batchOf(all, 0));
  expect(outcome).toEqual({ written: 2, duplicates: 2, refused: 4 });
  const rows = await asked(url, `SELECT properties->>'price' AS price FROM ${table} ORDER BY 1`);
  expect(rows).toEqual([{ price: "1" }, { price: "3" }]);
  expect(await rejectedAt(url)).toEqual({ count: 4, places: 4 });
});

test("one repeated rejected event is not reported as a wrong table", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  const { uuid } = sinkRecordOf(1, {}, todayMs);
  const events = Array.from({ length: 120 }, (_, at) => ({
    ...sinkRecordOf(1 + at, { price: "free" }, todayMs),
    uuid,
  }));
  const outcome = await target.write(batchOf(events, 0));
  expect(outcome).toEqual({ written: 0, duplicates: 0, refused: 120 });
});

test("hundreds of rejected events in a batch do not exhaust PostgreSQL's locks", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`);
  const events = Array.from({ length: 1_000 }, (_, at) =>
    sinkRecordOf(1 + at, { price: at % 2 === 0 ? "free" : "1" }, Date.UTC(2026, 10, 22, 12)),
  );
  const outcome = await target.write(batchOf(events, 0));
  expect(outcome).toEqual({ written: 500, duplicates: 0, refused: 500 });
});

test("a broken trigger fails the batch of the PostgreSQL sink", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, triggerOf("INSERT INTO nowhere VALUES (1)"));
  const batch = batchOf([sinkRecordOf(1, { price: "free" }, Date.UTC(2026, 10, 22, 12))], 0);
  await expect(target.write(batch)).rejects.toThrow("nowhere");
  await target.open();
  await asked(url, `DROP TRIGGER refuse ON ${table}`);
  expect(await target.write(batch)).toMatchObject({ written: 1, refused: 0 });
});

test("a dropped partition fails the batch of the PostgreSQL sink", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  await target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0));
  await asked(url, `DROP TABLE ${schema}.events_20261122`);
  const next = batchOf([sinkRecordOf(2, {}, todayMs)], 1);
  await expect(target.write(next)).rejects.toThrow("no partition");
  await target.open();
  expect(await target.write(next)).toMatchObject({ written: 1, refused: 0 });
});

const month = `PARTITION OF ${table} FOR VALUES FROM ('2026-11-01') TO ('2026-12-01')`;

test.each([
  ["moved to another schema", "CREATE SCHEMA archive; ALTER TABLE part SET SCHEMA archive"],
  ["renamed", "ALTER TABLE part RENAME TO mine"],
  ["detached, and retained", `ALTER TABLE ${table} DETACH PARTITION part`],
  [
    "detached repeatedly",
    `ALTER TABLE ${table} DETACH PARTITION part; CREATE TABLE part_2 (LIKE part)`,
  ],
  ["a monthly partition of the user", `DROP TABLE part; CREATE TABLE ${schema}.november ${month}`],
  [
    "the default partition",
    `ALTER TABLE ${table} DETACH PARTITION part; CREATE TABLE ${schema}.rest PARTITION OF ${table} DEFAULT;
    INSERT INTO ${table} SELECT * FROM part`,
  ],
])("the PostgreSQL sink writes later events of a day whose partition is %s", async (_, sql) => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  await target.write(batchOf([sinkRecordOf(1, {}, todayMs)], 0));
  await asked(url, sql.replace(/\bpart(_2)?\b/g, `${schema}.events_20261122$1`));
  await target.open();
  const next = batchOf([sinkRecordOf(2, {}, todayMs), sinkRecordOf(3, {}, todayMs + dayMs)], 1);
  expect(await target.write(next)).toMatchObject({ written: 2, refused: 0 });
  await target.open();
  expect(await target.write(batchOf([sinkRecordOf(4, {}, todayMs)], 3))).toMatchObject({
    written: 1,
  });
  const [row] = await asked(
    url,
    `SELECT count(*)::int AS n FROM ${table} WHERE uuid::text > '00000000-0000-4000-8000-000000000001'`,
  );
  expect(row).toEqual({ n: 3 });
});

test("the PostgreSQL sink records a rejected project id that PostgreSQL cannot hold", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const line = { stream, sequence: 1, line: 0, storedAtMs: 0, projectId: "a\0b" };
  const rejected = [{ ...line, reason: "not_json", detail: "x", text: Buffer.from("x") } as const];
  await target.write({ ...batchOf([], 0), rejected });
  expect(await rejectedAt(url)).toEqual({ count: 1, places: 1 });
});
