import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { startUpstream } from "../../../kit/posthog-upstream.ts";
import { makeStreams, storeFrames } from "../../../kit/stored-events.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";
import { positionTests } from "../suite-positions.ts";
import { streamTests } from "../suite-streams.ts";
import { frameOf, newFolder, sentUuids, takenUuids, targetTo } from "./posthog-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const upstream = await startUpstream();
afterAll(() => upstream.stop());
const within = { timeout: 20_000 };

beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
});
afterEach(() => {
  upstream.taken.length = 0;
  upstream.play = () => undefined;
});

async function untilDone(folder: string, events: number): Promise<void> {
  const target = targetTo(upstream, { folder });
  const { writer, counts } = startSink(connection, target);
  await expect.poll(() => counts.events + counts.rejected, within).toBe(events);
  await writer.close();
  await target.close();
}

positionTests(async () => {
  const folder = newFolder();
  return () => targetTo(upstream, { folder });
});

streamTests(connection, async () => {
  const folder = newFolder();
  const file = path.join(folder, "positions.json");
  return {
    target: () => targetTo(upstream, { folder }),
    uuids: async () => upstream.events().map(({ uuid }) => uuid),
    kinds: async () => {
      const state = JSON.parse(readFileSync(file, "utf8")) as { incidents: { kind: string }[] };
      return state.incidents.map(({ kind }) => kind);
    },
  };
});

test("the PostHog sink continues at the position of the previous sink", async () => {
  const folder = newFolder();
  const frames = [1, 2].map((n) => frameOf("shop", [{ properties: { n } }, {}]));
  for (const frame of frames) {
    await storeFrames(connection, [frame]);
    await untilDone(folder, 2);
  }
  expect(takenUuids(upstream)).toEqual(sentUuids(frames));
});

test("the PostHog sink sends an unfinished batch again with the same uuids", async () => {
  const folder = newFolder();
  const frame = frameOf("shop", [{}, {}]);
  await storeFrames(connection, [frame]);
  await untilDone(folder, 2);
  rmSync(path.join(folder, "positions.json"));
  await untilDone(folder, 2);
  const uuids = frame.events.map(({ uuid }) => uuid);
  expect(takenUuids(upstream)).toEqual({ "key-shop false": [...uuids, ...uuids] });
});

test("the PostHog sink records the rejections of an unfinished batch once", async () => {
  const folder = newFolder();
  const aside = path.join(folder, "aside.ndjson");
  const linesIn = () => readFileSync(aside, "utf8").split("\n").length - 1;
  upstream.play = ({ body }) =>
    body.batch.some(({ event }) => event === "bad") ? { status: 400 } : undefined;
  await storeFrames(connection, [frameOf("shop", [{}, { event: "bad" }])]);
  await untilDone(folder, 2);
  expect(linesIn()).toBe(1);
  // Simulates a process that was killed between the writes of the two files.
  appendFileSync(aside, '{"half');
  await storeFrames(connection, [frameOf("shop", [{ event: "bad" }, {}])]);
  await untilDone(folder, 2);
  expect(linesIn()).toBe(2);
  expect(() =>
    readFileSync(aside, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).not.toThrow();
  rmSync(aside);
  await storeFrames(connection, [frameOf("shop", [{ event: "bad" }, {}])]);
  await untilDone(folder, 2);
  expect(linesIn()).toBe(1);
});

test("the PostHog sink stands by while another sink writes", async () => {
  const folder = newFolder();
  const first = targetTo(upstream, { folder });
  const one = startSink(connection, first);
  await expect.poll(() => one.writer.status(Date.now()).state, within).toBe("writing");
  const two = startSink(connection, targetTo(upstream, { folder }));
  await expect.poll(() => two.writer.status(Date.now()).state, within).toBe("standing by");
  expect(two.writer.status(0).standsByFor).toContain(`: process ${process.pid} on `);
  const frames = [frameOf("shop", [{}]), frameOf("shop", [{}])];
  await storeFrames(connection, frames.slice(0, 1));
  await expect.poll(() => one.counts.events, within).toBe(1);
  await one.writer.close();
  await first.close();
  await storeFrames(connection, frames.slice(1));
  await expect.poll(() => two.counts.events, within).toBe(1);
  expect(takenUuids(upstream)).toEqual(sentUuids(frames));
});

test("the PostHog sink does not change a folder of another upstream", async () => {
  const folder = newFolder();
  await storeFrames(connection, [frameOf("shop", [{}])]);
  await untilDone(folder, 1);
  const file = path.join(folder, "positions.json");
  const state = readFileSync(file, "utf8");
  const elsewhere = targetTo({ url: "http://127.0.0.1:1" }, { folder });
  const moved = startSink(connection, elsewhere);
  const reasons = () => moved.writer.status(Date.now()).reasons.join();
  await expect
    .poll(reasons, within)
    .toMatch(/the state of a sink to http:.*Use another --state folder/);
  await moved.writer.close();
  await elsewhere.close();
  writeFileSync(file, "{}");
  const broken = targetTo(upstream, { folder });
  await expect(broken.open()).rejects.toThrow(/it is not the state of a sink/);
  writeFileSync(file, state.replace('"version":1', '"version":2'));
  await expect(broken.open()).rejects.toThrow(/positions\.json: it is from a newer release/);
  await broken.close();
  writeFileSync(file, state);
});

test("the PostHog sink follows no symbolic link to its rejected file", async () => {
  const folder = newFolder();
  const other = path.join(folder, "other");
  writeFileSync(other, "foreign");
  symlinkSync(other, path.join(folder, "aside.ndjson"));
  const target = targetTo(upstream, { folder });
  await expect(target.open()).rejects.toThrow(
    /aside\.ndjson: it is not a regular file, but a link/,
  );
  await target.close();
  expect(readFileSync(other, "utf8")).toBe("foreign");
});

test("the PostHog sink waits while its folder is missing", async () => {
  const folder = newFolder();
  const target = targetTo(upstream, { folder });
  const { counts, writer } = startSink(connection, target);
  await expect.poll(() => writer.status(Date.now()).state, within).toBe("writing");
  rmSync(folder, { recursive: true, maxRetries: 10 });
  await storeFrames(connection, [frameOf("shop", [{}])]);
  await expect.poll(() => counts.events, within).toBe(1);
  expect(existsSync(path.join(folder, "positions.json"))).toBe(true);
  expect(new Set(upstream.events().map(({ uuid }) => uuid)).size).toBe(1);
});

test("the PostHog sink sends nothing until it can write its state", async () => {
  const folder = newFolder();
  const inTheWay = path.join(folder, "positions.json.new");
  mkdirSync(inTheWay);
  const { counts, writer } = startSink(connection, targetTo(upstream, { folder }));
  const frame = frameOf("shop", [{}]);
  await storeFrames(connection, [frame]);
  const reasons = () => writer.status(Date.now()).reasons.join();
  await expect.poll(reasons, within).toMatch(/cannot write .*positions\.json: /);
  rmSync(inTheWay, { recursive: true });
  await expect.poll(() => counts.events, within).toBe(1);
  expect(takenUuids(upstream)).toEqual(sentUuids([frame]));
});
