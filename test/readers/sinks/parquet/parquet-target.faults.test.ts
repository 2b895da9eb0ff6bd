import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { SinkBatch, SinkPosition } from "../../../../src/readers/sinks/sink-target.ts";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { askedOfParquet, manifestOf } from "../../../kit/parquet-rows.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { eventsIn } from "../../../kit/sink-events.ts";
import { sinkRecord } from "../../../kit/sink-record.ts";
import { makeStreams, storeFrames, type TestFrame, uuidOf } from "../../../kit/stored-events.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";
import { eventsOfParquet, newFolder, parquetTarget } from "./parquet-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const within = { timeout: 30_000 };
const random = numbersFrom(7);
beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
});

async function stored(): Promise<TestFrame[]> {
  const seen = new Set<string>();
  const frames = randomFrames(random, { count: 20 }).map((frame) => ({
    ...frame,
    events: frame.events.filter(({ uuid }) => !seen.has(uuid) && seen.add(uuid)),
  }));
  await storeFrames(connection, frames);
  return frames;
}

const events = (folder: string) => () => eventsOfParquet(folder).catch(() => []);

test("a Parquet sink stands by while another sink writes", async () => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const first = startSink(connection, target);
  const frames = await stored();
  await expect.poll(events(folder), within).toEqual(eventsIn(frames));
  const other = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const second = startSink(connection, other);
  await expect.poll(() => second.writer.status(0).state).toBe("standing by");
  expect(second.writer.status(0).standsByFor).toMatch(
    new RegExp(`process ${process.pid} on ${hostname()}, since \\d{4}-.*Z\\. .* end it \\(kill`),
  );
  await first.writer.close();
  await target.close();
  await expect.poll(() => second.writer.status(Date.now()).state, within).toBe("writing");
  const more = await stored();
  await expect.poll(events(folder), within).toEqual(eventsIn([...frames, ...more]));
});

test("a Parquet sink waits for a folder that was moved away", async () => {
  const folder = newFolder();
  const { writer } = startSink(connection, parquetTarget(folder, { segmentAgeMsMax: 20 }));
  const frames = await stored();
  await expect.poll(events(folder), within).toEqual(eventsIn(frames));
  renameSync(folder, `${folder}-away`);
  const more = await stored();
  const reasons = () => writer.status(Date.now()).reasons.join();
  await expect
    .poll(reasons, within)
    .toMatch(/is not the folder that the sink opened: restore the original folder/);
  expect(existsSync(folder)).toBe(false);
  mkdirSync(folder);
  await expect.poll(reasons, within).toMatch(/is not the folder that the sink opened/);
  rmSync(folder, { recursive: true });
  renameSync(`${folder}-away`, folder);
  await expect.poll(events(folder), within).toEqual(eventsIn([...frames, ...more]));
  expect(reasons()).toBe("");
});

test("a Parquet sink creates its folder with its first file", async () => {
  const folder = newFolder();
  const inTheWay = path.join(folder, "_penstock/folder.json.new");
  mkdirSync(inTheWay, { recursive: true });
  const target = parquetTarget(folder);
  await expect(target.open()).rejects.toThrow(/folder\.json\.new/);
  await expect(target.open()).rejects.toThrow(/folder\.json\.new/);
  rmSync(inTheWay, { recursive: true });
  expect(await target.open()).toEqual([]);
  await target.close();
});

test("a Parquet sink does not write to a folder with foreign events", async () => {
  const folder = newFolder();
  mkdirSync(path.join(folder, "events"), { recursive: true });
  const { writer } = startSink(connection, parquetTarget(folder));
  await expect
    .poll(() => writer.status(Date.now()).reasons.join(), within)
    .toMatch(/has events, but no _penstock, which contains their positions/);
});

test("a Parquet sink holds events while it cannot create files", async () => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const { writer } = startSink(connection, target);
  const reasons = () => writer.status(Date.now()).reasons.join();
  await expect
    .poll(() => existsSync(path.join(folder, "_penstock/folder.json")), within)
    .toBe(true);
  writeFileSync(path.join(folder, "events"), "");
  const frames = await stored();
  await expect.poll(reasons, within).toMatch(/Parquet files in .*warehouse/);
  const more = await stored();
  rmSync(path.join(folder, "events"));
  await expect.poll(events(folder), within).toEqual(eventsIn([...frames, ...more]));
  await expect.poll(reasons, within).toBe("");
});

function batchOf(sequence: number): SinkBatch {
  const name = { stream: "PENSTOCK_LIVE_0", lane: "live", partition: 0 } as const;
  const place = { epoch: 1, created: "2026-11-01T00:00:00Z", sequence, trail: [] };
  const before = { epoch: 1, sequence: sequence - 1 };
  return {
    before: new Map(sequence === 1 ? [] : [[name.stream, before]]),
    positions: [{ ...name, ...place }],
    events: [sinkRecord({ uuid: uuidOf(sequence), sequence })],
    rejected: [],
    incidents: [],
  };
}

const sequencesOf = (positions: readonly SinkPosition[]) =>
  positions.map(({ sequence }) => sequence);
const uuidsIn = async (folder: string) =>
  (await askedOfParquet(folder, "SELECT uuid FROM events ORDER BY 1")).map(({ uuid }) => uuid);

async function twoCommits() {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentBytesMax: 1 });
  await target.open();
  await target.write(batchOf(1));
  const before = manifestOf(folder);
  const second = batchOf(2);
  const other = sinkRecord({ uuid: uuidOf(3), sequence: 2, line: 1, projectId: "blog" });
  await target.write({ ...second, events: [...second.events, other] });
  await target.close();
  const { files } = manifestOf(folder);
  expect(files.length).toBe(2);
  const back = (count: number): void => {
    mkdirSync(path.join(folder, "_penstock/making"));
    for (const { made, place } of files.slice(0, count))
      renameSync(path.join(folder, place), path.join(folder, "_penstock", made));
  };
  return { folder, files, before, back };
}

test("a Parquet sink killed before it wrote its manifest reads the segment again", async () => {
  const { folder, before, back } = await twoCommits();
  back(2);
  writeFileSync(path.join(folder, "_penstock/manifest.json"), JSON.stringify(before));
  writeFileSync(path.join(folder, "_penstock/rows"), "half a row");
  const target = parquetTarget(folder);
  expect(sequencesOf(await target.open())).toEqual([1]);
  expect(existsSync(path.join(folder, "_penstock/making"))).toBe(false);
  await target.write(batchOf(2));
  await target.close();
  expect(await uuidsIn(folder)).toEqual([1, 2].map(uuidOf));
});

test.each([1, 2])(
  "a killed Parquet sink moves the remaining %i files to their final names",
  async (n) => {
    const { folder, back } = await twoCommits();
    back(n);
    const target = parquetTarget(folder);
    expect(sequencesOf(await target.open())).toEqual([2]);
    await target.close();
    expect(await uuidsIn(folder)).toEqual([1, 2, 3].map(uuidOf));
    expect(existsSync(path.join(folder, "_penstock/making"))).toBe(false);
  },
);

test("a Parquet sink does not restore a file that was removed", async () => {
  const { folder, files } = await twoCommits();
  for (const { place } of files) rmSync(path.join(folder, place));
  const target = parquetTarget(folder);
  expect(sequencesOf(await target.open())).toEqual([2]);
  await target.close();
  expect(await uuidsIn(folder)).toEqual([1].map(uuidOf));
});

test.each([
  ["before its manifest", "_penstock/manifest.json.new"],
  ["after its manifest", "events/project_id=shop/day=2026-11-23"],
])("a Parquet sink adds no batch after a commit that failed %s", async (_, name) => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentBytesMax: 1 });
  await target.open();
  const inTheWay = path.join(folder, name);
  mkdirSync(path.dirname(inTheWay), { recursive: true });
  if (name.startsWith("events")) writeFileSync(inTheWay, "");
  else mkdirSync(inTheWay);
  await expect(target.write(batchOf(1))).rejects.toThrow(/warehouse/);
  await expect(target.write(batchOf(2))).rejects.toThrow(/warehouse/);
  await expect(target.open()).rejects.toThrow(/warehouse/);
  expect(target.faults.join()).toMatch(/warehouse/);
  rmSync(inTheWay, { recursive: true });
  expect(sequencesOf(await target.open())).toEqual([1]);
  expect(target.faults).toEqual([]);
  await target.write(batchOf(2));
  await target.close();
  expect(await uuidsIn(folder)).toEqual([1, 2].map(uuidOf));
});

test("a Parquet sink writes no file for a batch that only moves positions", async () => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentAgeMsMax: 10 });
  await target.open();
  await target.write({ ...batchOf(1), events: [] });
  await expect.poll(() => sequencesOf(target.committed), within).toEqual([1]);
  expect(manifestOf(folder).files).toEqual([]);
  await target.close();
});

test("a Parquet sink counts uncommitted events as unread", async () => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentAgeMsMax: 2_000 });
  const { writer, counts } = startSink(connection, target);
  const frames = await stored();
  await expect.poll(() => counts.events, within).toBe(eventsIn(frames).length);
  const read = () => writer.status(Date.now()).streams.map(({ sequence }) => sequence);
  expect(new Set(read())).toEqual(new Set([0]));
  await expect.poll(events(folder), within).toEqual(eventsIn(frames));
  await expect.poll(() => Math.min(...read()), within).toBeGreaterThan(0);
  expect(read().sort()).toEqual(sequencesOf(target.committed).sort());
});

test("a Parquet sink stops at a damaged manifest", async () => {
  const { folder } = await twoCommits();
  truncateSync(path.join(folder, "_penstock/manifest.json"), 20);
  const target = parquetTarget(folder);
  await expect(target.open()).rejects.toThrow(/_penstock\/manifest\.json is damaged: restore/);
  await target.close();
});

test("a Parquet sink stops at a manifest of a newer release, and changes nothing", async () => {
  const { folder } = await twoCommits();
  const file = path.join(folder, "_penstock/manifest.json");
  const newer = readFileSync(file, "utf8").replace('"version":1', '"version":2');
  writeFileSync(file, newer);
  const target = parquetTarget(folder);
  await expect(target.open()).rejects.toThrow(
    /manifest\.json is from a newer release of Penstock: start the sink of that release/,
  );
  await target.close();
  expect(readFileSync(file, "utf8")).toBe(newer);
});

test("a Parquet sink stops if its manifest was removed", async () => {
  const { folder } = await twoCommits();
  rmSync(path.join(folder, "_penstock/manifest.json"));
  const target = parquetTarget(folder);
  await expect(target.open()).rejects.toThrow(
    /manifest\.json is missing, and contains the positions/,
  );
  await target.close();
});

test("a Parquet sink continues in a folder of release 0.1", async () => {
  const folder = newFolder();
  cpSync(path.join(import.meta.dirname, "folder-0.1"), folder, { recursive: true });
  const target = parquetTarget(folder);
  const [position] = await target.open();
  expect(position).toMatchObject({ stream: "PENSTOCK_LIVE_0", epoch: 1, sequence: 2 });
  expect(position?.trail.map(({ messageId }) => messageId)).toEqual(["m1", "m2"]);
  expect(await uuidsIn(folder)).toEqual([1, 2].map(uuidOf));
  const old = readdirSync(path.join(folder, "_penstock")).filter((name) => /^\d/.test(name));
  // Rejected by a sink of 0.1.0, as test/e2e/upgrade shows.
  expect(old).toEqual(["99999999.journal"]);
  await target.write(batchOf(3));
  await target.close();
  expect(await uuidsIn(folder)).toEqual([1, 2, 3].map(uuidOf));
  expect(manifestOf(folder)).toMatchObject({ segment: 3, incidents: [expect.any(String)] });
});
