import { cpSync, globSync } from "node:fs";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, expect, test } from "vitest";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { askedOfParquet as asked, positionsOfParquet } from "../../../kit/parquet-rows.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { almostUuid, eventsIn } from "../../../kit/sink-events.ts";
import { makeStreams, storedLine, storeFrames, uuidOf } from "../../../kit/stored-events.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";
import { positionTests } from "../suite-positions.ts";
import { streamTests } from "../suite-streams.ts";
import { eventsOfParquet, newFolder, parquetTarget } from "./parquet-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const within = { timeout: 30_000 };
beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection, 2);
});

const receivedAtMs = Date.UTC(2026, 10, 22, 3, 4, 5, 678);
let uuids = 0;
const uuid = () => uuidOf(++uuids);
async function untilWritten(folder: string): Promise<void> {
  const manager = await jetstreamManager(connection);
  const last: Record<string, number> = {};
  for await (const { config, state } of manager.streams.list()) last[config.name] = state.last_seq;
  await expect.poll(() => positionsOfParquet(folder).catch(() => ({})), within).toEqual(last);
}

test("a Parquet sink writes each event to a file of its project and day", async () => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentBytesMax: 8_192, segmentAgeMsMax: 20 });
  const frames = randomFrames(numbersFrom(1), { count: 60, partitions: 2 });
  const { writer, counts } = startSink(connection, target);
  await storeFrames(connection, frames);
  await untilWritten(folder);
  await writer.close();
  await target.close();
  const found = await eventsOfParquet(folder);
  expect([...new Set(found)]).toEqual(eventsIn(frames));
  expect(found.length).toBe(counts.events);
  const sent = frames.reduce((sum, { events }) => sum + events.length, 0);
  expect(counts.events + counts.duplicates).toBe(sent);
  const files = globSync("events/*/*/*", { cwd: folder });
  expect(files.length).toBeGreaterThan(12);
  const day = new Date().toISOString().slice(0, 8);
  for (const file of files)
    expect(file).toMatch(
      new RegExp(
        `^events/project_id=p\\d/day=${day}\\d\\d/[0-9a-f]{8}-\\d{8}-\\d+-[0-9a-f]{8}\\.parquet$`,
      ),
    );
  const own = globSync("_penstock/*", { cwd: folder }).map((file) => path.basename(file));
  expect(own.sort()).toEqual([
    "99999999.journal",
    "folder.json",
    "holder.json",
    "lock",
    "manifest.json",
    "rows",
  ]);
});

test("a Parquet sink writes the fields of a record as columns", async () => {
  const folder = newFolder();
  const properties =
    '{"a":  1e400000,\r"b":"\\u00e9 \\" \\\\ \\u0000 \\ud800","c":[null,12345678901234567890.12345]}';
  const first = `{"uuid":"${uuid()}","project_id":"shop","event":"a \\"name\\" é\\n\\u0000\\u001e\\u001f\\r","distinct_id":"id\\n1","timestamp":"0000-01-02T03:04:05.678Z","timestamp_sent":"2026-11-22T03:00:00.001Z","received_at":"2026-11-22T03:04:05.678Z","sent_at":"2026-11-22T03:04:05.000Z","ip":"1.2.3.4","kind":"pageview","person_profile":false,"historical":true,"properties":${properties},"$set":{"x":1},"$set_once":{"y":{}},"$unset":["z"]}`;
  const second = `{ "distinct_id":"d", "uuid":"${uuid().toUpperCase()}", "batch":[1], "properties":{"event":"no"}, "event":"odd", "project_id":"shop", "timestamp":"9999-12-31T23:59:59.999Z" }`;
  const long = {
    uuid: uuid(),
    distinctId: "long",
    receivedAtMs,
    properties: { t: "x".repeat(900_000) },
  };
  await storeFrames(connection, [
    {
      lane: "live",
      projectId: "shop",
      messageId: "m",
      events: [],
      text: `${first}\n\n${second}\n${storedLine(long, "shop", "live")}\n`,
    },
  ]);
  const target = parquetTarget(folder, { segmentAgeMsMax: 10 });
  startSink(connection, target);
  await expect.poll(() => eventsOfParquet(folder), within).toHaveLength(3);
  const columns = await asked(
    folder,
    "SELECT column_name, column_type FROM (DESCRIBE FROM events)",
  );
  expect(columns.map(({ column_name: name, column_type: type }) => `${name} ${type}`)).toEqual([
    "uuid VARCHAR",
    "event VARCHAR",
    "distinct_id VARCHAR",
    ...["timestamp", "received_at", "stored_at", "timestamp_sent", "sent_at"].map(
      (name) => `${name} TIMESTAMP WITH TIME ZONE`,
    ),
    "ip VARCHAR",
    "kind VARCHAR",
    "person_profile BOOLEAN",
    "historical BOOLEAN",
    "person_uuid VARCHAR",
    "properties VARCHAR",
    "set VARCHAR",
    "set_once VARCHAR",
    "unset VARCHAR",
    "day DATE",
    "project_id VARCHAR",
  ]);
  const rows = await asked(
    folder,
    `SELECT project_id, event, distinct_id, epoch_ms(timestamp) AS timestamp,
      epoch_ms(timestamp_sent) AS timestamp_sent, epoch_ms(received_at) AS received_at,
      epoch_ms(sent_at) AS sent_at, ip, kind, person_profile, historical,
      properties, "set", set_once, unset
    FROM events WHERE distinct_id <> 'long' ORDER BY events.timestamp`,
  );
  expect(rows).toEqual([
    {
      project_id: "shop",
      event: 'a "name" é\n\0\x1e\x1f\r',
      distinct_id: "id\n1",
      timestamp: String(Date.parse("0000-01-02T03:04:05.678Z")),
      timestamp_sent: String(Date.parse("2026-11-22T03:00:00.001Z")),
      received_at: String(receivedAtMs),
      sent_at: String(Date.parse("2026-11-22T03:04:05.000Z")),
      ip: "1.2.3.4",
      kind: "pageview",
      person_profile: false,
      historical: true,
      properties: properties.replace("\r", " "),
      set: '{"x":1}',
      set_once: '{"y":{}}',
      unset: '["z"]',
    },
    {
      project_id: "shop",
      event: "odd",
      distinct_id: "d",
      timestamp: String(Date.parse("9999-12-31T23:59:59.999Z")),
      timestamp_sent: null,
      received_at: String(Date.parse("9999-12-31T23:59:59.999Z")),
      sent_at: null,
      ip: null,
      kind: "custom",
      person_profile: true,
      historical: false,
      properties: '{"event":"no"}',
      set: null,
      set_once: null,
      unset: null,
    },
  ]);
  const [{ length } = {}] = await asked(
    folder,
    "SELECT length(properties) AS length FROM events WHERE distinct_id = 'long'",
  );
  expect(Number(length)).toBe(900_008);
});

positionTests(async () => {
  const folder = newFolder();
  return () => parquetTarget(folder);
});

streamTests(connection, async () => {
  const folder = newFolder();
  const column = async (name: string, table: string) =>
    (await asked(folder, `SELECT ${name} FROM ${table}`)).map((row) => row[name]);
  return {
    target: () => parquetTarget(folder, { segmentAgeMsMax: 20 }),
    uuids: async () => (await column("uuid", "events")).map(String),
    kinds: () => column("kind", "incidents"),
  };
});

test("a Parquet sink writes lines that are not records to separate files", async () => {
  const folder = newFolder();
  const line = (distinctId: string): string =>
    storedLine({ uuid: uuid(), distinctId, receivedAtMs }, "shop", "live");
  const other = line("other").replace('"shop"', '"other"');
  const noUuid = line("c").replace(/[^"]{36}/, "0123456789abcdef-".repeat(3).slice(0, 36));
  const almost = storedLine({ uuid: almostUuid, distinctId: "d", receivedAtMs }, "shop", "live");
  const lines = [line("a"), "no json \0\x1f\x1e", "[]", other, noUuid, line("b"), almost];
  await storeFrames(connection, [
    { lane: "live", projectId: "shop", messageId: "m", events: [], text: lines.join("\n") },
  ]);
  const target = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const { writer, counts } = startSink(connection, target);
  await untilWritten(folder);
  await writer.close();
  await target.close();
  expect(await asked(folder, "SELECT distinct_id FROM events ORDER BY 1")).toEqual([
    { distinct_id: "a" },
    { distinct_id: "b" },
  ]);
  const rejected = await asked(
    folder,
    "SELECT stream, sequence, line, project_id, reason, record FROM rejected ORDER BY line",
  );
  const place = { stream: "PENSTOCK_LIVE_0", sequence: "1", project_id: "shop" };
  expect(rejected).toEqual([
    { ...place, line: "1", reason: "not_json", record: lines[1] },
    { ...place, line: "2", reason: "not_a_record", record: "[]" },
    { ...place, line: "3", reason: "wrong_project", record: other },
    { ...place, line: "4", reason: "not_a_record", record: noUuid },
    { ...place, line: "6", reason: "not_a_record", record: almost },
  ]);
  expect(counts).toMatchObject({ events: 2, rejected: 5, duplicates: 0 });
});

test("a Parquet sink continues from the last commit in a copied folder", async () => {
  const folder = newFolder();
  const copy = newFolder();
  const random = numbersFrom(4);
  const frames = randomFrames(random, { count: 30, partitions: 2 });
  await storeFrames(connection, frames);
  const first = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const { writer } = startSink(connection, first);
  await untilWritten(folder);
  await writer.close();
  await first.close();
  cpSync(folder, copy, { recursive: true });
  const more = randomFrames(random, { count: 30, partitions: 2 });
  await storeFrames(connection, more);
  const second = parquetTarget(copy, { segmentAgeMsMax: 20 });
  const other = startSink(connection, second);
  await untilWritten(copy);
  await other.writer.close();
  await second.close();
  const found = await eventsOfParquet(copy);
  expect([...new Set(found)]).toEqual(eventsIn([...frames, ...more]));
});

test("a Parquet sink writes one file for each of many projects", async () => {
  const folder = newFolder();
  const projects = Array.from({ length: 60 }, (_, index) => `p${index}`);
  await storeFrames(
    connection,
    projects.map((projectId) => ({
      lane: "live" as const,
      projectId,
      messageId: projectId,
      partition: 0,
      events: [{ uuid: uuid(), distinctId: "d", receivedAtMs }],
    })),
  );
  const target = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const { writer } = startSink(connection, target);
  await untilWritten(folder);
  await writer.close();
  await target.close();
  const rows = await asked(folder, "SELECT project_id, count(*)::int AS n FROM events GROUP BY 1");
  expect(rows.map(({ project_id: id, n }) => `${id} ${n}`).sort()).toEqual(
    projects.map((id) => `${id} 1`).sort(),
  );
});

test("a Parquet sink reads only its folder if its name is a pattern", async () => {
  const above = newFolder();
  const names = ["w*y", "way", "w?y", "[w]ay"];
  await storeFrames(connection, randomFrames(numbersFrom(2), { count: 20, partitions: 2 }));
  const written: string[][] = [];
  for (const name of names) {
    const folder = path.join(above, name);
    const target = parquetTarget(folder, { segmentBytesMax: 8_192, segmentAgeMsMax: 20 });
    const { writer } = startSink(connection, target);
    await untilWritten(folder);
    await writer.close();
    await target.close();
    const plain = path.join(newFolder(), "plain");
    cpSync(folder, plain, { recursive: true });
    written.push(await eventsOfParquet(plain));
  }
  expect(written[0]?.length).toBeGreaterThan(0);
  for (const one of written) expect(one).toEqual(written[0]);
});
