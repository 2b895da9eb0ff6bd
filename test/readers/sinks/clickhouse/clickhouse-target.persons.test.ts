import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, test } from "vitest";
import { ClickHouseTarget } from "../../../../src/readers/sinks/clickhouse/clickhouse-target.ts";
import { ddl, modernForm, serverForm } from "../../../../src/readers/sinks/clickhouse/tables.ts";
import { askedClickHouse as asked } from "../../../kit/clickhouse-rows.ts";
import { clickHousesForFile, natsServerForFile } from "../../../kit/for-file.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { sinkSchema as database, eventsAt, eventsIn } from "../../../kit/sink-events.ts";
import { makeStreams, storeFrames } from "../../../kit/stored-events.ts";
import { personsIn, personsOn } from "../persons/persons-kit.ts";
import { startSink } from "../sink-kit.ts";

const nats = await natsServerForFile();
const clickHouses = await clickHousesForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const within = { timeout: 30_000 };

test("the ClickHouse tables have a person_uuid column only for a sink with persons", () => {
  const column = /ALTER TABLE warehouse.events ADD COLUMN IF NOT EXISTS person_uuid Nullable/;
  expect(ddl("warehouse", modernForm, { withPerson: true })).toMatch(column);
  expect(ddl("warehouse", modernForm, { withPerson: false })).not.toMatch(/person_uuid/);
  const old = ddl("warehouse", serverForm("18.16.1"), { withPerson: true });
  expect(old).toMatch(/ADD COLUMN person_uuid Nullable/);
});

describe.each(clickHouses)("the ClickHouse sink with persons", ({ url }) => {
  test("adds a missing person_uuid column and fills it", async () => {
    await makeStreams(connection);
    const random = numbersFrom(1);
    const before = randomFrames(random, { count: 10, linkedLanes: [] });
    await storeFrames(connection, before);
    const first = new ClickHouseTarget({ url, database });
    const { writer } = startSink(connection, first);
    await expect.poll(() => eventsAt(url).catch(() => []), within).toEqual(eventsIn(before));
    await writer.close();
    await first.close();

    const after = randomFrames(random, { count: 40, linkedLanes: [] });
    await storeFrames(connection, after);
    const { persons, wantedOf } = await personsOn(connection);
    const fixed = new ClickHouseTarget({ url, database, withPerson: true, makesTables: false });
    await expect(fixed.open()).rejects.toThrow("events.person_uuid does not exist");
    await fixed.close();
    const target = new ClickHouseTarget({ url, database, withPerson: true });
    startSink(connection, target, { persons });
    await expect.poll(() => eventsAt(url), within).toEqual(eventsIn([...before, ...after]));
    const rows = await asked(url, `SELECT * FROM ${database}.events FINAL`);
    const old = new Set(before.flatMap(({ events }) => events.map(({ uuid }) => uuid)));
    const isOld = ({ uuid }: Record<string, unknown>) => old.has(String(uuid));
    const fresh = rows.filter((row) => !isOld(row));
    expect(personsIn(fresh)).toEqual(await wantedOf(fresh));
    expect(new Set(fresh.map(({ person_uuid: uuid }) => uuid)).size).toBeGreaterThan(10);
    const uuidsBefore = rows.filter(isOld).map(({ person_uuid: uuid }) => uuid);
    expect(new Set(uuidsBefore)).toEqual(new Set([null]));
  });
});
