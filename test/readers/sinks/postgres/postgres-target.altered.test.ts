import { expect, onTestFinished, test } from "vitest";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { rejectedAt, sinkSchema as schema } from "../../../kit/sink-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { batchOf, sinkRecordOf } from "./postgres-kit.ts";

const postgres = await postgresForFile();
const table = `${schema}.events`;
const todayMs = Date.UTC(2026, 10, 22, 12);

async function opened(url: string, withPerson = false): Promise<PostgresTarget> {
  const target = new PostgresTarget({ url, schema, withPerson });
  onTestFinished(() => target.close());
  await target.open();
  return target;
}

function eventsOf(count: number, properties: object = {}) {
  return Array.from({ length: count }, (_, at) => ({
    ...sinkRecordOf(1 + at, properties, todayMs),
    personUuid: "00000000-0000-4000-8000-000000000abc",
  }));
}

test.each([
  ["ip", "inet", "text"],
  ["properties", "json", "jsonb"],
  ["person_profile", "integer", "boolean"],
  ["timestamp", "date", "timestamptz"],
  ["person_uuid", "text", "uuid"],
])("the PostgreSQL sink stops if the column %s is altered to %s", async (column, type, wanted) => {
  const url = await newDatabase(postgres);
  const target = await opened(url, true);
  await asked(
    url,
    `DROP INDEX ${schema}.events_by_time;
    ALTER TABLE ${table} ALTER COLUMN ${column} TYPE ${type} USING ${column}::${type}`,
  );
  const fault = `the column ${column} of ${table} is ${type}, and must be ${wanted}`;
  await expect(target.write(batchOf(eventsOf(20), 0))).rejects.toThrow();
  await expect(target.open()).rejects.toThrow(fault);
  expect(await rejectedAt(url)).toEqual({ count: 0, places: 0 });
  expect(await asked(url, `SELECT sequence FROM ${schema}.positions`)).toEqual([]);
});

test("the PostgreSQL sink does not open tables of a newer release", async () => {
  const url = await newDatabase(postgres);
  await (await opened(url)).close();
  await asked(url, `UPDATE ${schema}.sink_version SET version = 99`);
  const target = new PostgresTarget({ url, schema });
  onTestFinished(() => target.close());
  await expect(target.open()).rejects.toThrow(
    "its tables have version 99, and this release supports 1: use a newer release",
  );
});

test("the PostgreSQL sink stops at a column of type name", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, `ALTER TABLE ${table} ALTER event TYPE name`);
  const long = eventsOf(1).map((event) => ({ ...event, event: "long ".repeat(20) }));
  await expect(target.write(batchOf(long, 0))).rejects.toThrow();
  await expect(target.open()).rejects.toThrow("is name, and must be text");
  expect(await rejectedAt(url)).toEqual({ count: 0, places: 0 });
});

test("the PostgreSQL sink accepts columns altered to another compatible type", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(
    url,
    `CREATE DOMAIN place AS text; CREATE DOMAIN document AS jsonb;
    CREATE DOMAIN paper AS document CHECK (jsonb_typeof(value) = 'object');
    CREATE DOMAIN moment AS timestamptz; CREATE DOMAIN receipt AS moment;
    CREATE TYPE kinds AS ENUM ('custom'); CREATE TYPE names AS ENUM ('seen');
    CREATE DOMAIN name_of_event AS names;
    ALTER TABLE ${table} ALTER event TYPE name_of_event USING event::names,
      ALTER kind TYPE kinds USING kind::kinds, ALTER distinct_id TYPE varchar(20),
      ALTER ip TYPE place, ALTER properties TYPE paper, ALTER received_at TYPE receipt,
      ALTER sent_at TYPE timestamp, ADD COLUMN person_uuid integer, ADD COLUMN mine inet`,
  );
  await target.open();
  expect(await target.write(batchOf(eventsOf(3), 0))).toMatchObject({ written: 3, refused: 0 });
  // The constraint makes the sink insert the events one by one.
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`);
  const [free, ...good] = eventsOf(3).map((event) => ({
    ...event,
    sequence: event.sequence + 3,
    uuid: event.uuid.replace(/^0/, "1"),
  }));
  const bad = { ...free!, properties: Buffer.from('{"price":"free"}') };
  expect(await target.write(batchOf([bad, ...good], 3))).toMatchObject({ written: 2, refused: 1 });
  const rest =
    "event, kind, distinct_id, ip, properties, timestamp, received_at, stored_at, sent_at";
  const kinds = await asked(url, `SELECT count(*)::int AS n FROM ${table} GROUP BY ${rest}`);
  expect(kinds).toEqual([{ n: 5 }]);
});

test("the PostgreSQL sink does not stop because of a constraint", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await target.write(batchOf([sinkRecordOf(1, { price: "free" }, todayMs)], 0));
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free') NOT VALID`);
  const free = Array.from({ length: 150 }, (_, at) =>
    sinkRecordOf(2 + at, { price: "free" }, todayMs),
  );
  const outcome = await target.write(batchOf(free, 1));
  expect(outcome).toEqual({ written: 0, duplicates: 0, refused: 150 });
  expect(await rejectedAt(url)).toEqual({ count: 150, places: 150 });
  const good = batchOf([sinkRecordOf(152, { price: "1" }, todayMs)], 151);
  expect(await target.write(good)).toEqual({ written: 1, duplicates: 0, refused: 0 });
});

test("the PostgreSQL sink writes a rejected event if a repetition is accepted", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(
    url,
    `ALTER TABLE ${table} ADD CONSTRAINT paid CHECK (properties->>'price' <> 'free')`,
  );
  const prices = ["1", "free", "free"];
  const events = prices.map((price, at) => sinkRecordOf(1 + at, { price }, todayMs));
  const first = await target.write(batchOf(events, 0));
  expect(first).toEqual({ written: 1, duplicates: 0, refused: 2 });
  const again = (after: number) =>
    batchOf(
      events.map((event) => ({ ...event, sequence: event.sequence + after })),
      after,
    );
  expect(await target.write(again(3))).toEqual({ written: 0, duplicates: 1, refused: 2 });
  expect(await rejectedAt(url)).toEqual({ count: 4, places: 4 });
  await asked(url, `ALTER TABLE ${table} DROP CONSTRAINT paid`);
  expect(await target.write(again(6))).toEqual({ written: 2, duplicates: 1, refused: 0 });
});

test("a repeated event rejected by a user's unique index counts as a duplicate", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(
    url,
    `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free');
    CREATE UNIQUE INDEX ON ${table} (distinct_id, stored_at)`,
  );
  const known = Array.from({ length: 3 }, (_, at) => ({
    ...sinkRecordOf(1 + at, { price: "1" }, todayMs),
    distinctId: `id ${at}`,
  }));
  await target.write(batchOf(known, 0));
  const again = known.map((event) => ({ ...event, sequence: event.sequence + 3 }));
  const free = Array.from({ length: 101 }, (_, at) => ({
    ...sinkRecordOf(7 + at, { price: "free" }, todayMs),
    distinctId: `new ${at}`,
  }));
  const outcome = await target.write(batchOf([...again, ...free], 3));
  expect(outcome).toEqual({ written: 0, duplicates: 3, refused: 101 });
});
