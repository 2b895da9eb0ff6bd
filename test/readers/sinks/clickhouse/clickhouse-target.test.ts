import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { ClickHouseTarget } from "../../../../src/readers/sinks/clickhouse/clickhouse-target.ts";
import { errorOf, hasException } from "../../../../src/readers/sinks/clickhouse/client.ts";
import { ddl, modernForm, serverForm } from "../../../../src/readers/sinks/clickhouse/tables.ts";
import {
  addProjects,
  erased,
  eventOf,
  frameOf as frameOfEvents,
} from "../../../commands/erase/erase-kit.ts";
import { askedClickHouse as asked } from "../../../kit/clickhouse-rows.ts";
import { clickHousesForFile, natsServerForFile } from "../../../kit/for-file.ts";
import { silent } from "../../../kit/processes.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import {
  almostUuid,
  eventsAt,
  eventsIn,
  positionsAt,
  sinkSchema,
} from "../../../kit/sink-events.ts";
import {
  makeStreams,
  storedLine,
  storeFrames,
  type TestEvent,
  type TestFrame,
  uuidOf,
} from "../../../kit/stored-events.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";
import { positionTests } from "../suite-positions.ts";
import { streamTests } from "../suite-streams.ts";

const nats = await natsServerForFile();
const clickHouses = await clickHousesForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const database = sinkSchema;
const within = { timeout: 30_000 };
let uuids = 0;
const uuid = () => uuidOf(++uuids);

const live = "PENSTOCK_LIVE_0";

function line(event: Partial<TestEvent>): string {
  const base = { uuid: uuid(), distinctId: "d", receivedAtMs: Date.UTC(2026, 10, 22) };
  return storedLine({ ...base, ...event }, "shop", "live");
}

function frameOf(text: string): TestFrame {
  return { lane: "live", projectId: "shop", messageId: uuid(), events: [], text };
}

test("ClickHouse tables have milliseconds on current servers and seconds on older ones", () => {
  const modern = ddl("warehouse", modernForm, { withPerson: false });
  expect(modern).toMatch(/timestamp DateTime64\(3, 'UTC'\),\n/);
  expect(modern).toMatch(/fsync_after_insert = 1/);
  const old = ddl("warehouse", serverForm("18.16.1"), { withPerson: false });
  expect(old).toMatch(/timestamp DateTime\('UTC'\),\n/);
  expect(old).not.toMatch(/SETTINGS|INDEX/);
});

describe.each(clickHouses)("the ClickHouse sink", (clickhouse) => {
  const { url } = clickhouse;

  beforeEach(async () => {
    await deleteStreams(connection, nats);
    await makeStreams(connection, 2);
    await asked(url, `DROP DATABASE IF EXISTS ${database}`);
  });

  positionTests(async () => () => new ClickHouseTarget({ url, database }));

  streamTests(connection, async () => {
    const column = async (name: string, table: string) => {
      const rows = await asked(url, `SELECT ${name} FROM ${database}.${table} FINAL`);
      return rows.map((row) => row[name]);
    };
    return {
      target: () => new ClickHouseTarget({ url, database }),
      uuids: async () => (await column("uuid", "events")).map(String),
      kinds: () => column("kind", "incidents"),
    };
  });

  async function untilWritten(streams = 4): Promise<void> {
    const manager = await jetstreamManager(connection);
    const last: Record<string, number> = {};
    for await (const { config, state } of manager.streams.list())
      last[config.name] = state.last_seq;
    expect(Object.keys(last).length).toBe(streams);
    await expect.poll(() => positionsAt(url).catch(() => ({})), within).toEqual(last);
  }

  test("writes every event of every stream once", async () => {
    const frames = randomFrames(numbersFrom(1), { count: 60, partitions: 2 });
    const warned: unknown[] = [];
    startSink(connection, new ClickHouseTarget({ url, database }), {
      log: { ...silent, warn: (...said: unknown[]) => void warned.push(said) },
    });
    await storeFrames(connection, frames);
    await untilWritten();
    expect(warned).toEqual([]);
    expect(await eventsAt(url)).toEqual(eventsIn(frames));
  });

  test("writes the fields of a record as columns", async () => {
    const properties = '{"a":  1e3,"b":"\\u00e9 \\" \\\\","c":[null,12345678901234567890.12345]}';
    const first = `{"uuid":"${uuid()}","project_id":"shop","event":"a \\"name\\" é","distinct_id":"id\\n1\\u0000","timestamp":"2026-11-22T03:04:05.678Z","timestamp_sent":"0001-11-22T03:00:00.001Z","received_at":"2026-11-22T03:04:06.678Z","sent_at":"2026-11-22T03:04:05.000Z","ip":"1.2.3.4","kind":"pageview","person_profile":false,"historical":true,"properties":${properties},"$set":{"x":1},"$set_once":{"y":{}},"$unset":["z"]}`;
    const second = `{ "distinct_id":"d", "uuid":"${uuid().toUpperCase()}", "batch":[1], "properties":{"event":"no"}, "event":"odd", "project_id":"shop", "timestamp":"2026-11-23T23:59:59.999Z" }`;
    const text = `${first}\n\n${second}\n`;
    await storeFrames(connection, [frameOf(text)]);
    startSink(connection, new ClickHouseTarget({ url, database }));
    await untilWritten();
    const [server] = await asked(url, "SELECT version() AS version");
    const { hasMilliseconds } = serverForm(String(server?.["version"]));
    const at = (text: string, ms = "000"): string => (hasMilliseconds ? `${text}.${ms}` : text);
    const rows = await asked(url, `SELECT * FROM ${database}.events ORDER BY timestamp`);
    expect(rows).toMatchObject([
      {
        project_id: "shop",
        event: 'a "name" é',
        distinct_id: "id\n1\0",
        timestamp: at("2026-11-22 03:04:05", "678"),
        sent_at: at("2026-11-22 03:04:05"),
        received_at: at("2026-11-22 03:04:06", "678"),
        ip: "1.2.3.4",
        kind: "pageview",
        person_profile: 0,
        historical: 1,
        properties,
        // Old servers show the first supported day for an empty date.
        day: hasMilliseconds ? "1970-01-01" : "0000-00-00",
        timestamp_sent: hasMilliseconds ? "1900-01-01 00:00:00.000" : "0000-00-00 00:00:00",
        set: '{"x":1}',
        set_once: '{"y":{}}',
        unset: '["z"]',
        stream: live,
        sequence: "1",
        line: 0,
      },
      {
        project_id: "shop",
        event: "odd",
        distinct_id: "d",
        day: "2026-11-23",
        timestamp: at("2026-11-23 23:59:59", "999"),
        received_at: at("2026-11-23 23:59:59", "999"),
        timestamp_sent: null,
        sent_at: null,
        ip: "",
        kind: "custom",
        person_profile: 1,
        historical: 0,
        properties: '{"event":"no"}',
        set: "",
        set_once: "",
        unset: "",
        stream: live,
        sequence: "1",
        line: 2,
      },
    ]);
  });

  test("rejects lines that are not records or that ClickHouse does not accept", async () => {
    const good = Array.from({ length: 20 }, () => line({}));
    const lines = [
      ...good.slice(0, 7),
      "broken",
      // Half a surrogate pair, which ClickHouse cannot read as a name.
      line({ event: "half" }).replace('"half"', '"\\ud800"'),
      ...good.slice(7),
      line({ timeMs: Date.UTC(9999, 0) }),
      line({ event: "half" }).replace('"half"', '"\\ud800"'),
      line({ uuid: almostUuid }),
    ];
    await storeFrames(connection, [frameOf(`${lines.join("\n")}\n`)]);
    const { counts } = startSink(connection, new ClickHouseTarget({ url, database }));
    await untilWritten();
    expect((await eventsAt(url)).length).toBe(good.length);
    const rejected = await asked(
      url,
      `SELECT line, reason, detail, record FROM ${database}.rejected FINAL ORDER BY line`,
    );
    expect(rejected).toMatchObject([
      { line: 7, reason: "not_json", record: "broken" },
      { line: 8, reason: "value", detail: expect.stringContaining("surrogate"), record: lines[8] },
      { line: 22, reason: "value", detail: expect.stringContaining("9999"), record: lines[22] },
      { line: 23, reason: "value", record: lines[23] },
      { line: 24, reason: "not_a_record", record: lines[24] },
    ]);
    // Rejections are counted after the positions are written.
    await expect.poll(() => counts.rejected, within).toBe(5);
    expect(counts).toMatchObject({ events: good.length, duplicates: 0 });
  });

  test("rejects more than 100 events outside ClickHouse's range of timestamps", async () => {
    const lines = Array.from({ length: 120 }, () => line({ timeMs: Date.UTC(9999, 0) }));
    const half = line({ event: "half" }).replace('"half"', '"\\ud800"');
    await storeFrames(connection, [frameOf(`${[...lines, half, line({})].join("\n")}\n`)]);
    const { counts } = startSink(connection, new ClickHouseTarget({ url, database }));
    await expect.poll(() => counts.rejected, within).toBe(121);
    expect(counts).toMatchObject({ events: 1, duplicates: 0 });
  });

  test("continues after more than 100 rejected events", async () => {
    const half = () => line({ event: "half" }).replace('"half"', '"\\ud800"');
    const bad = (count: number) => Array.from({ length: count }, half);
    await storeFrames(connection, [frameOf(`${bad(120).join("\n")}\n`)]);
    const { counts } = startSink(connection, new ClickHouseTarget({ url, database }));
    await expect.poll(() => counts.rejected, within).toBe(120);
    const lines = [...bad(50), line({ event: "good" }), ...bad(20), line({ event: "good" })];
    await storeFrames(connection, [frameOf(`${lines.join("\n")}\n`)]);
    await expect.poll(() => counts.rejected, within).toBe(190);
    expect(counts).toMatchObject({ events: 2, duplicates: 0 });
    expect((await eventsAt(url)).length).toBe(2);
  });

  test("writes the first accepted event of several equal events", async () => {
    const one = uuid();
    const half = line({ uuid: one, event: "half" }).replace('"half"', '"\\ud800"');
    const late = line({ uuid: one, event: "first", timeMs: Date.UTC(9999, 0) });
    const [whole, other] = ["first", "second"].map((event) => line({ uuid: one, event }));
    const lines = [late, half, half, whole, late, half, whole, other, line({})];
    await storeFrames(connection, [frameOf(`${lines.join("\n")}\n`)]);
    const { counts } = startSink(connection, new ClickHouseTarget({ url, database }));
    await untilWritten();
    const rows = await asked(
      url,
      `SELECT event FROM ${database}.events FINAL WHERE uuid = '${one}' ORDER BY event`,
    );
    expect(rows).toEqual([{ event: "first" }, { event: "second" }]);
    await expect.poll(() => counts.rejected, within).toBe(5);
    expect(counts).toMatchObject({ events: 3, duplicates: 1 });
  });

  test("records a rejection before it writes another event with that uuid", async () => {
    const one = uuid();
    const half = line({ uuid: one }).replace('"d"', '"\\ud800"');
    await storeFrames(connection, [frameOf(`${line({})}\n`)]);
    startSink(connection, new ClickHouseTarget({ url, database }));
    await untilWritten();
    // The missing table interrupts the batch. The next attempt creates the table again.
    await asked(url, `DROP TABLE ${database}.rejected`);
    await storeFrames(connection, [frameOf(`${half}\n${line({ uuid: one })}\n`)]);
    await untilWritten();
    const rejected = `SELECT uniqExact(line) AS n FROM ${database}.rejected`;
    expect(await asked(url, rejected)).toEqual([{ n: "1" }]);
    expect(await eventsAt(url)).toHaveLength(2);
  });

  test("does not repeat rows of a batch whose position was not written", async () => {
    const frames = randomFrames(numbersFrom(2), { count: 60, partitions: 2 });
    await storeFrames(connection, frames);
    const first = new ClickHouseTarget({ url, database });
    const { writer } = startSink(connection, first);
    await untilWritten();
    await writer.close();
    await first.close();
    // Simulates a sink that was killed before each write of its positions.
    await asked(url, `TRUNCATE TABLE ${database}.positions`);
    await storeFrames(connection, randomFrames(numbersFrom(3), { count: 5, partitions: 2 }));
    const again = startSink(connection, new ClickHouseTarget({ url, database }));
    await untilWritten();
    // The server may have merged the two rows of an event that was sent twice.
    await expect
      .poll(() => again.counts.duplicates, within)
      .toBeGreaterThanOrEqual(eventsIn(frames).length);
    const twice = `SELECT count() - uniqExact(stream, sequence, line) AS n FROM ${database}.events`;
    expect(await asked(url, twice)).toEqual([{ n: "0" }]);
  });

  test("does not repeat rows of a message that was rewritten meanwhile", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOfEvents(["ada", "bob", "eve"].map((id) => eventOf(id)))]);
    const first = new ClickHouseTarget({ url, database });
    const { writer } = startSink(connection, first);
    await expect.poll(() => eventsAt(url).catch(() => []), within).toHaveLength(3);
    await writer.close();
    await first.close();
    await asked(url, `TRUNCATE TABLE ${database}.positions`);
    await erased({ natsUrl: nats.url, ids: ["ada"] });
    const { counts } = startSink(connection, new ClickHouseTarget({ url, database }));
    await expect.poll(() => counts.events + counts.duplicates, within).toBe(2);
    expect(counts).toMatchObject({ events: 0, duplicates: 2 });
    expect(await eventsAt(url)).toHaveLength(3);
  });

  test("stands by while another sink writes", async () => {
    const targets = [1, 2].map(() => new ClickHouseTarget({ url, database }));
    const [first, second] = targets.map((target) => startSink(connection, target));
    const states = () => [first, second].map((sink) => sink?.writer.status(Date.now()).state);
    await expect.poll(() => states().sort(), within).toEqual(["standing by", "writing"]);
    const at = states().indexOf("writing");
    const frames = randomFrames(numbersFrom(4), { count: 30, partitions: 2 });
    await storeFrames(connection, frames.slice(0, 15));
    await untilWritten();
    await [first, second][at]!.writer.close();
    await targets[at]!.close();
    await storeFrames(connection, frames.slice(15));
    await untilWritten();
    expect(states()[1 - at]).toBe("writing");
    expect(await eventsAt(url)).toEqual(eventsIn(frames));
  });

  test("waits for a server that was killed or is frozen", async () => {
    const frames = randomFrames(numbersFrom(5), { count: 40, partitions: 2 });
    const { counts } = startSink(connection, new ClickHouseTarget({ url, database }));
    await storeFrames(connection, frames.slice(0, 20));
    await expect.poll(() => counts.commits, within).toBeGreaterThan(0);
    await clickhouse.restart();
    await storeFrames(connection, frames.slice(20, 30));
    clickhouse.freeze();
    await storeFrames(connection, frames.slice(30));
    clickhouse.thaw();
    await untilWritten();
    expect(await eventsAt(url)).toEqual(eventsIn(frames));
  });

  test("waits for a server with too little memory for a batch", async () => {
    await clickhouse.restart({ settings: { max_memory_usage: "2000000" } });
    const reasons: string[] = [];
    const { writer } = startSink(connection, new ClickHouseTarget({ url, database }), {
      log: {
        ...silent,
        warn: ({ reason }: { reason?: unknown }) => void reasons.push(`${reason}`),
      },
    });
    const big = line({ properties: { text: "secret ".repeat(300_000) } });
    await storeFrames(connection, [frameOf(`${big}\n`)]);
    const said = () => writer.status(Date.now()).reasons.join();
    await expect.poll(said, within).toMatch(/out of memory: waiting/);
    expect(reasons.join()).not.toContain("secret");
    await clickhouse.restart({ settings: {} });
    await untilWritten();
    expect((await eventsAt(url)).length).toBe(1);
  });

  test("reports a wrong password without showing it", async () => {
    const wrong = new ClickHouseTarget({
      url: url.replace(clickhouse.password, "hunter2"),
      database,
    });
    const error = await wrong.open().then(String, String);
    expect(error).toMatch(/check user and password of the URL/);
    expect(error).not.toContain("hunter2");
    await asked(url, `CREATE DATABASE ${database}`);
    await asked(url, `CREATE TABLE ${database}.events (project_id String) ENGINE = Log`);
    const target = new ClickHouseTarget({ url, database });
    await expect(target.open()).rejects.toThrow(/events\.uuid does not exist\. .*--ddl/);
    await asked(url, `DROP DATABASE ${database}`);
    const strict = new ClickHouseTarget({ url, database, makesTables: false });
    await expect(strict.open()).rejects.toThrow(/events\.project_id does not exist/);
    for (const one of [wrong, target, strict]) await one.close();
  });

  test("treats a response with an exception after its 200 as an error", async () => {
    const { origin, username, password } = new URL(url);
    const sql = "SELECT throwIf(number = 900000), number FROM numbers(1000000)";
    const answer = await fetch(`${origin}/?max_block_size=1000`, {
      method: "POST",
      body: sql,
      headers: { "x-clickhouse-user": username, "x-clickhouse-key": password },
    });
    expect(answer.status).toBe(200);
    const text = await answer.text().catch(() => "");
    expect(hasException(text)).toBe(true);
    expect(errorOf("ask", { status: 200, code: undefined, text }).code).toBe(395);
  });
});
