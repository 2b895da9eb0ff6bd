import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, expect, test } from "vitest";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { findNatsServer, startNatsServer } from "../../../kit/nats-server.ts";
import { startPostgres } from "../../../kit/postgres.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { silent } from "../../../kit/processes.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import {
  almostUuid,
  eventsAt,
  eventsIn,
  positionsAt,
  sinkSchema as schema,
} from "../../../kit/sink-events.ts";
import { makeStreams, storedLine, storeFrames, uuidOf } from "../../../kit/stored-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";

const nats = await startNatsServer({ syncInterval: "2m", binary: findNatsServer() });
const postgres = await startPostgres();
const connection: NatsConnection = await connect({
  servers: nats.url,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 20,
  reconnectJitter: 0,
});
afterAll(async () => {
  await connection.close();
  await postgres.remove();
  await nats.remove();
});
beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection, 2);
});

const receivedAtMs = Date.UTC(2026, 10, 22, 3, 4, 5, 678);
let uuids = 0;
const uuid = () => uuidOf(++uuids);
async function untilWritten(url: string, streams = 4): Promise<void> {
  const manager = await jetstreamManager(connection);
  const last: Record<string, number> = {};
  for await (const { config, state } of manager.streams.list()) last[config.name] = state.last_seq;
  expect(Object.keys(last).length).toBe(streams);
  const there = () => positionsAt(url).catch(() => ({}));
  await expect.poll(there, { timeout: 30_000 }).toEqual(last);
}

test("the PostgreSQL sink writes every event of every stream once", async () => {
  const url = await newDatabase(postgres);
  const frames = randomFrames(numbersFrom(1), { count: 60, partitions: 2 });
  const warned: unknown[] = [];
  const { counts } = startSink(connection, new PostgresTarget({ url, schema }), {
    log: { ...silent, warn: (...said: unknown[]) => void warned.push(said) },
  });
  await storeFrames(connection, frames);
  await untilWritten(url);
  expect(await eventsAt(url)).toEqual(eventsIn(frames));
  expect(warned).toEqual([]);
  const sent = frames.reduce((sum, { events }) => sum + events.length, 0);
  expect(counts.events).toBe(eventsIn(frames).length);
  expect(counts.duplicates).toBe(sent - counts.events);
});

test("the PostgreSQL sink writes two different events with the same uuid", async () => {
  const url = await newDatabase(postgres);
  const one = { uuid: uuid(), receivedAtMs };
  const events = [
    { ...one, event: "a", distinctId: "d" },
    { ...one, event: "b", distinctId: "d" },
    { ...one, event: "a", distinctId: "e" },
  ];
  const frame = { lane: "live", projectId: "shop" } as const;
  await storeFrames(connection, [
    { ...frame, messageId: "first", events: [...events, events[0]!] },
    { ...frame, messageId: "again", events },
  ]);
  const sink = startSink(connection, new PostgresTarget({ url, schema }));
  await untilWritten(url);
  const written = `SELECT event || distinct_id AS name FROM ${schema}.events ORDER BY 1`;
  const names = async () => (await asked(url, written)).map(({ name }) => name);
  expect(await names()).toEqual(["ad", "ae", "bd"]);
  expect(sink.counts).toMatchObject({ events: 3, duplicates: 4 });

  const older = { uuid: uuid(), receivedAtMs, event: "old", distinctId: "d" };
  await asked(
    url,
    `INSERT INTO ${schema}.event_keys VALUES ('${older.uuid}', 'shop', '2026-01-01')`,
  );
  const fresh = { uuid: uuid(), receivedAtMs, event: "new", distinctId: "d" };
  await storeFrames(connection, [{ ...frame, messageId: "old", events: [older, fresh] }]);
  await untilWritten(url);
  expect(await names()).toEqual(["ad", "ae", "bd", "newd"]);
});

test("the PostgreSQL sink writes the fields of a record as columns", async () => {
  const url = await newDatabase(postgres);
  const properties = '{"a":  1e3,"b":"\\u00e9 \\" \\\\","c":[null,12345678901234567890.12345]}';
  const first = `{"uuid":"${uuid()}","project_id":"shop","event":"a \\"name\\" é","distinct_id":"id\\n1","timestamp":"0000-01-02T03:04:05.678Z","timestamp_sent":"2026-11-22T03:00:00.001Z","received_at":"2026-11-22T03:04:05.678Z","sent_at":"2026-11-22T03:04:05.000Z","ip":"1.2.3.4","kind":"pageview","person_profile":false,"historical":true,"properties":${properties},"$set":{"x":1},"$set_once":{"y":{}},"$unset":["z"]}`;
  const second = `{ "distinct_id":"d", "uuid":"${uuid().toUpperCase()}", "batch":[1], "properties":{"event":"no"}, "event":"odd", "project_id":"shop", "timestamp":"9999-12-31T23:59:59.999Z" }`;
  await storeFrames(connection, [
    {
      lane: "live",
      projectId: "shop",
      messageId: "m",
      events: [],
      text: `${first}\n\n${second}\n`,
    },
  ]);
  startSink(connection, new PostgresTarget({ url, schema }));
  await untilWritten(url);
  const rows = await asked(
    url,
    `SELECT project_id, event, distinct_id, timestamp::text, timestamp_sent::text, received_at::text,
      sent_at::text, ip, kind, person_profile, historical, properties::text, set, set_once, unset
    FROM ${schema}.events ORDER BY events.timestamp`,
  );
  expect(rows).toEqual([
    {
      project_id: "shop",
      event: 'a "name" é',
      distinct_id: "id\n1",
      timestamp: "0001-01-02 03:04:05.678+00 BC",
      timestamp_sent: "2026-11-22 03:00:00.001+00",
      received_at: "2026-11-22 03:04:05.678+00",
      sent_at: "2026-11-22 03:04:05+00",
      ip: "1.2.3.4",
      kind: "pageview",
      person_profile: false,
      historical: true,
      properties: '{"a": 1000, "b": "é \\" \\\\", "c": [null, 12345678901234567890.12345]}',
      set: { x: 1 },
      set_once: { y: {} },
      unset: ["z"],
    },
    {
      project_id: "shop",
      event: "odd",
      distinct_id: "d",
      timestamp: "9999-12-31 23:59:59.999+00",
      timestamp_sent: null,
      received_at: "9999-12-31 23:59:59.999+00",
      sent_at: null,
      ip: null,
      kind: "custom",
      person_profile: true,
      historical: false,
      properties: '{"event": "no"}',
      set: null,
      set_once: null,
      unset: null,
    },
  ]);
});

test("the PostgreSQL sink rejects lines that PostgreSQL does not accept", async () => {
  const url = await newDatabase(postgres);
  const line = (properties: string, more: object = {}) => {
    const event = { uuid: uuid(), distinctId: "d", receivedAtMs, ...more };
    return storedLine(event, "shop", "live").replace(
      '"properties":{}',
      `"properties":${properties}`,
    );
  };
  const lines = [
    line('{"fine":1}'),
    line('{"n":1e400000}'),
    "no json",
    "[]",
    line('{"t":"\\u0000"}'),
    line('{"t":"\\ud800"}'),
    line("{}", { event: "a\0b" }),
    line("{}").replace('"shop"', '"other"'),
    `{"uuid":"${uuid()}","project_id":"shop"}`,
    line('{"fine":2}'),
    line('{"n":[1e131071]}'),
    line("{}", { uuid: almostUuid }),
  ];
  await storeFrames(connection, [
    { lane: "live", projectId: "shop", messageId: "m", events: [], text: lines.join("\n") },
  ]);
  const { counts } = startSink(connection, new PostgresTarget({ url, schema }));
  await untilWritten(url);
  const events = await asked(url, `SELECT properties->'fine' AS fine FROM ${schema}.events`);
  expect(events.map(({ fine }) => fine).sort()).toEqual([1, 2]);
  const rejected = await asked(
    url,
    `SELECT line, project_id, reason, detail, record FROM ${schema}.rejected ORDER BY line`,
  );
  expect(rejected.map((row) => `${row["line"]} ${row["project_id"]} ${row["reason"]}`)).toEqual([
    "1 shop value",
    "2 shop not_json",
    "3 shop not_a_record",
    "4 shop value",
    "5 shop value",
    "6 shop value",
    "7 shop wrong_project",
    "8 shop not_a_record",
    "10 shop value",
    "11 shop not_a_record",
  ]);
  const hugeNumber = "the event has a number that jsonb would write out with thousands of digits";
  expect(rejected[0]).toMatchObject({ record: lines[1], detail: hugeNumber });
  expect(rejected[7]).toMatchObject({ detail: "the timestamp of the event is not a time" });
  expect(counts).toMatchObject({ events: 2, rejected: 10, duplicates: 0 });
});

test("the PostgreSQL sink omits projects and streams that are not selected", async () => {
  const url = await newDatabase(postgres);
  const frames = randomFrames(numbersFrom(2), { count: 40, partitions: 2 });
  await storeFrames(connection, frames);
  startSink(connection, new PostgresTarget({ url, schema }), {
    filter: { projects: new Set(["p1", "p2"]), lanes: ["live"] },
  });
  const wanted = frames.filter(
    ({ projectId, lane }) => ["p1", "p2"].includes(projectId) && lane === "live",
  );
  await expect.poll(() => eventsAt(url).catch(() => [])).toEqual(eventsIn(wanted));
  expect(Object.keys(await positionsAt(url)).sort()).toEqual([
    "PENSTOCK_LIVE_0",
    "PENSTOCK_LIVE_1",
  ]);
});

test("the PostgreSQL sink stands by while another sink writes", async () => {
  const url = await newDatabase(postgres);
  const random = numbersFrom(3);
  const frames = randomFrames(random, { count: 30, partitions: 2 });
  await storeFrames(connection, frames);
  const first = startSink(connection, new PostgresTarget({ url, schema }));
  await untilWritten(url);
  const other = new PostgresTarget({ url, schema });
  const second = startSink(connection, other);
  await expect.poll(() => second.writer.status(0).state).toBe("standing by");
  const more = randomFrames(random, { count: 30, partitions: 2 });
  await storeFrames(connection, more);
  await untilWritten(url);
  expect(second.counts.events).toBe(0);
  await asked(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  await first.writer.close();
  await expect
    .poll(() => second.writer.status(Date.now()).state, { timeout: 10_000 })
    .toBe("writing");
  const last = randomFrames(random, { count: 30, partitions: 2 });
  await storeFrames(connection, last);
  await untilWritten(url);
  expect(await eventsAt(url)).toEqual(eventsIn([...frames, ...more, ...last]));
});

test("the PostgreSQL sink repeats nothing after another sink advanced the positions", async () => {
  const url = await newDatabase(postgres);
  const frames = randomFrames(numbersFrom(4), { count: 60, partitions: 2 });
  await storeFrames(connection, frames);
  const target = new PostgresTarget({ url, schema });
  const write = target.write.bind(target);
  let nth = 0;
  let moved = 0;
  target.write = async (batch) => {
    // A sink without the lock writes the same batch.
    if (++nth === 3) await write(batch);
    return await write(batch).catch((error: Error) => {
      if (error.name === "MovedError") moved++;
      throw error;
    });
  };
  startSink(connection, target);
  await untilWritten(url);
  expect(moved).toBe(1);
  expect(await eventsAt(url)).toEqual(eventsIn(frames));
});
