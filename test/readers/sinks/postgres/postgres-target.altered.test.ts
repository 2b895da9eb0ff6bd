// A table of events that is not the one that it should be: the sink stops and says why, instead of
// putting every event aside.

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
    ip: "203.0.113.7",
    personUuid: "00000000-0000-4000-8000-000000000abc",
  }));
}

test.each([
  ["ip", "inet", "text"],
  ["properties", "json", "jsonb"],
  ["person_profile", "integer", "boolean"],
  ["timestamp", "date", "timestamptz"],
  ["person_uuid", "text", "uuid"],
])("of a column %s that is %s nothing is put aside", async (column, type, wanted) => {
  const url = await newDatabase(postgres);
  const target = await opened(url, true);
  await asked(
    url,
    `DROP INDEX ${schema}.events_by_time;
    ALTER TABLE ${table} ALTER COLUMN ${column} TYPE ${type} USING ${column}::${type}`,
  );
  const fault = `the column ${column} of ${table} is ${type}, and has to be ${wanted}`;
  await expect(target.write(batchOf(eventsOf(20), 0))).rejects.toThrow();
  await expect(target.open()).rejects.toThrow(fault);
  expect(await rejectedAt(url)).toEqual({ count: 0, places: 0 });
  expect(await asked(url, `SELECT sequence FROM ${schema}.positions`)).toEqual([]);
});

test("columns of another kind of string, of an enum, a domain or a timestamp are written", async () => {
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
});

test("a table that takes none of more than a hundred events stops the sink", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`);
  const free = eventsOf(101, { price: "free" });
  await expect(target.write(batchOf(free, 0))).rejects.toThrow(
    `so it is with 101 events of one batch: look at the types and constraints of ${table}`,
  );
  expect(await rejectedAt(url)).toEqual({ count: 0, places: 0 });
  await target.open();
  const all = batchOf([...free, sinkRecordOf(102, { price: "1" }, todayMs)], 0);
  expect(await target.write(all)).toEqual({ written: 1, duplicates: 0, refused: 101 });
});

test("more than a hundred refused events stop nothing if the table takes an event that it has", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(
    url,
    `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free'),
      ADD PRIMARY KEY (uuid, stored_at)`,
  );
  await target.write(batchOf([sinkRecordOf(1, { price: "1" }, todayMs)], 0));
  const free = Array.from({ length: 150 }, (_, at) =>
    sinkRecordOf(2 + at, { price: "free" }, todayMs),
  );
  const outcome = await target.write(batchOf(free, 1));
  expect(outcome).toEqual({ written: 0, duplicates: 0, refused: 150 });
  expect(await rejectedAt(url)).toEqual({ count: 150, places: 150 });
});

test("a table whose refused events come again, beside events that it has, stops nothing", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  await asked(
    url,
    `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free'),
      ADD PRIMARY KEY (uuid, stored_at)`,
  );
  const prices = Array.from({ length: 151 }, (_, at) => (at % 3 === 0 ? "1" : "free"));
  const events = prices.map((price, at) => sinkRecordOf(1 + at, { price }, todayMs));
  const first = await target.write(batchOf(events, 0));
  expect(first).toEqual({ written: 51, duplicates: 0, refused: 100 });
  const again = events.map((event) => ({ ...event, sequence: event.sequence + 151 }));
  again.push(sinkRecordOf(303, { price: "free" }, todayMs));
  const second = await target.write(batchOf(again, 151));
  expect(second).toEqual({ written: 0, duplicates: 51, refused: 101 });
  expect(await rejectedAt(url)).toEqual({ count: 201, places: 201 });
  await asked(url, `ALTER TABLE ${table} ADD CHECK (properties = '{}') NOT VALID`);
  const unfit = again.map((event) => ({ ...event, sequence: event.sequence + 152 }));
  await expect(target.write(batchOf(unfit, 303))).rejects.toThrow("so it is with 101 events");
});

test("nor does one with a unique index of the user's, which has those events under it", async () => {
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
