// What a sink into Parquet files does when its folder is not what it was, another one has it, or
// files cannot be made.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, expect, test } from "vitest";
import { filesOf, readJournal, Segment } from "../../../../src/readers/sinks/parquet/segment.ts";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { eventsIn } from "../../../kit/sink-events.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../../kit/stored-events.ts";
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

/** Frames in which no event is there twice, stored. */
async function stored(): Promise<TestFrame[]> {
  const seen = new Set<string>();
  const frames = randomFrames(random, { count: 20 }).map((frame) => ({
    ...frame,
    events: frame.events.filter(({ uuid }) => !seen.has(uuid) && seen.add(uuid)),
  }));
  await storeFrames(connection, frames);
  return frames;
}

/** Of the events that are in files, each as often as it is there. */
const events = (folder: string) => () => eventsOfParquet(folder).catch(() => []);

test("of two sinks on one folder one writes, and the other takes over when that one is gone", async () => {
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

test("a folder that is moved away is not made anew, and put back it is written on", async () => {
  const folder = newFolder();
  const { writer } = startSink(connection, parquetTarget(folder, { segmentAgeMsMax: 20 }));
  const frames = await stored();
  await expect.poll(events(folder), within).toEqual(eventsIn(frames));
  renameSync(folder, `${folder}-away`);
  const more = await stored();
  const reasons = () => writer.status(Date.now()).reasons.join();
  await expect.poll(reasons, within).toMatch(/is not the folder that it was: put that one back/);
  expect(existsSync(folder)).toBe(false);
  // Nor is another one taken for it.
  mkdirSync(folder);
  await expect.poll(reasons, within).toMatch(/is not the folder that it was/);
  rmSync(folder, { recursive: true });
  renameSync(`${folder}-away`, folder);
  await expect.poll(events(folder), within).toEqual(eventsIn([...frames, ...more]));
  expect(reasons()).toBe("");
});

test("a folder whose first file could not be written is made once it can be", async () => {
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

test("events without the book-keeping are not written to", async () => {
  const folder = newFolder();
  mkdirSync(path.join(folder, "events"), { recursive: true });
  const { writer } = startSink(connection, parquetTarget(folder));
  await expect
    .poll(() => writer.status(Date.now()).reasons.join(), within)
    .toMatch(/has events, but not _penstock, which says how far they go/);
});

test("while files cannot be made, events wait, and none is lost or there twice", async () => {
  const folder = newFolder();
  const target = parquetTarget(folder, { segmentAgeMsMax: 20 });
  const { writer } = startSink(connection, target);
  const reasons = () => writer.status(Date.now()).reasons.join();
  await expect
    .poll(() => existsSync(path.join(folder, "_penstock/folder.json")), within)
    .toBe(true);
  // A file stands where a folder is to be.
  writeFileSync(path.join(folder, "events"), "");
  const frames = await stored();
  await expect.poll(reasons, within).toMatch(/Parquet files in .*warehouse/);
  const more = await stored();
  rmSync(path.join(folder, "events"));
  await expect.poll(events(folder), within).toEqual(eventsIn([...frames, ...more]));
  await expect.poll(reasons, within).toBe("");
});

/** A copy of a folder of which no file is made yet: all events are in its first segment. */
async function unfiled() {
  const [folder, copy] = [newFolder(), newFolder()];
  const { writer, counts } = startSink(connection, parquetTarget(folder));
  const frames = await stored();
  await expect.poll(() => counts.events, within).toBe(eventsIn(frames).length);
  await writer.close();
  cpSync(folder, copy, { recursive: true });
  return { folder: copy, frames, files: filesOf(copy, 1) };
}

test("what a crash left of a batch is cut off, and the batch is written again", async () => {
  const { folder, frames, files } = await unfiled();
  const { size } = statSync(files.journal);
  truncateSync(files.journal, size - 1);
  writeFileSync(files.rows, "half a row", { flag: "a" });
  startSink(connection, parquetTarget(folder, { segmentAgeMsMax: 20 }));
  await expect.poll(events(folder), within).toEqual(eventsIn(frames));
});

test("a sealed segment whose journal or rows are damaged is kept, and no part of it made into files", async () => {
  const { folder, frames, files } = await unfiled();
  const { positions, incidents } = await readJournal(files);
  await (await Segment.begin(filesOf(folder, 2), { number: 2, positions, incidents })).close();
  const [journal, rows] = [readFileSync(files.journal), readFileSync(files.rows)];
  const [head, ...batches] = journal.toString().split("\n");
  const last = batches.findLastIndex((line) => line.includes('"runs":[['));
  const damaged = batches.map((line, at) => (at === last ? line.replace("{", "\0") : line));
  writeFileSync(files.journal, [head, ...damaged].join("\n"));
  const { writer } = startSink(connection, parquetTarget(folder));
  const reasons = () => writer.status(Date.now()).reasons.join();
  const said = new RegExp(`1\\.journal, whole up to its byte \\d+, .* has ${rows.length}: one of`);
  await expect.poll(reasons, within).toMatch(said);
  writeFileSync(files.journal, journal);
  truncateSync(files.rows, rows.length - 1);
  await expect.poll(reasons, within).toMatch(`has ${rows.length - 1}: one of them is damaged`);
  expect(await events(folder)()).toEqual([]);
  writeFileSync(files.rows, rows);
  await expect.poll(events(folder), within).toEqual(eventsIn(frames));
});
