import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { startUpstream, type UpstreamRequest } from "../../../kit/posthog-upstream.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { almostUuid } from "../../../kit/sink-events.ts";
import { makeStreams, storeFrames } from "../../../kit/stored-events.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";
import {
  frameOf,
  newFolder,
  sentUuids,
  takenUuids,
  targetTo,
  withProperties,
} from "./posthog-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const upstream = await startUpstream();
afterAll(() => upstream.stop());
const within = { timeout: 20_000 };

beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection, 2);
});
afterEach(() => {
  upstream.taken.length = 0;
  upstream.requests.length = 0;
  upstream.play = () => undefined;
});

function asideIn(folder: string): Record<string, unknown>[] {
  const text = readFileSync(path.join(folder, "aside.ndjson"), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function eachOnce(all: Record<string, string[]>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(all).map(([name, uuids]) => [name, [...new Set(uuids)]]),
  );
}

function hasBad({ body }: UpstreamRequest): boolean {
  return body.batch.some(({ properties }) => properties["bad"] === true);
}

test("the PostHog sink delivers every event of every stream once", async () => {
  const frames = randomFrames(numbersFrom(21), { count: 80, partitions: 2 });
  await storeFrames(connection, frames);
  upstream.play = () => delay(2, undefined);
  const target = targetTo(upstream, { limits: { requestEventsMax: 7 } });
  const { counts } = startSink(connection, target);
  const sent = sentUuids(frames);
  const total = Object.values(sent).flat().length;
  await expect.poll(() => counts.events, within).toBe(total);
  expect(takenUuids(upstream)).toEqual(sent);
  expect(upstream.most.ofOne).toBe(1);
  expect(upstream.most.ofAll).toBeGreaterThan(1);
  expect(Math.max(...upstream.taken.map(({ batch }) => batch.length))).toBe(7);
  expect(target.requests.get("taken")).toBe(upstream.taken.length);
});

test("the PostHog sink delivers an event as it was stored", async () => {
  const uuids = [1, 2, 3, 4].map((n) => `00000000-0000-4000-a000-00000000000${n}`);
  const record = (at: number, more: string): string =>
    `{"uuid":"${uuids[at]}","project_id":"shop","event":"a \\"name\\" é","distinct_id":"id\\n1","timestamp":"2026-01-02T03:04:05.678Z","received_at":"2026-11-22T03:04:05.678Z"${more}}`;
  const text = [
    record(
      0,
      ',"ip":"1.2.3.4","kind":"custom","person_profile":false,"historical":true,"properties":{"a":  1e3,"zip":[12345678901234567890]},"$set":{"x":1},"$set_once":{"y":{}},"$unset":["z"]',
    ),
    record(1, ',"kind":"custom","person_profile":true,"historical":true,"properties":{}'),
    record(2, ',"ip":"1.2.3.4","historical":true,"properties":{"$ip":"9.9.9.9","$unset":["a"]}'),
    record(3, ',"ip":"1.2.3.4","historical":true,"properties":{ "$ip" : null }'),
  ].join("\n");
  await storeFrames(connection, [
    { lane: "historical", projectId: "shop", messageId: "one", events: [], text },
  ]);
  const keyOf = async () => 'phc_"quoted"';
  startSink(connection, targetTo(upstream, { keyOf }));
  await expect.poll(() => upstream.events().length, within).toBe(4);
  const [request] = upstream.requests;
  expect(request?.headers["content-encoding"]).toBe("gzip");
  expect(request?.body).toEqual({
    api_key: 'phc_"quoted"',
    historical_migration: true,
    batch: [
      {
        properties: { a: 1000, zip: [1.2345678901234567e19], $ip: "1.2.3.4", $unset: ["z"] },
        $set: { x: 1 },
        $set_once: { y: {} },
      },
      { properties: { $ip: "0.0.0.0" } },
      { properties: { $ip: "9.9.9.9", $unset: ["a"] } },
      { properties: { $ip: "1.2.3.4" } },
    ].map((one, at) => ({
      uuid: uuids[at],
      event: 'a "name" é',
      distinct_id: "id\n1",
      timestamp: "2026-01-02T03:04:05.678Z",
      ...one,
    })),
  });
});

test("the PostHog sink delivers events in order through outages of every kind", async () => {
  const folder = newFolder();
  const target = targetTo(upstream, { folder, limits: { requestEventsMax: 9, answerMsMax: 100 } });
  let asked = 0;
  const never = new Promise<undefined>(() => {});
  const plays = [
    () => ({ status: 503, headers: { "retry-after": "0" } }),
    () => ({ status: 429, headers: { "retry-after": new Date().toUTCString() } }),
    () => "cut" as const,
    () => ({ status: 200, body: "<html>signed out</html>" }),
    () => ({ status: 204 }),
    () => ({ status: 200, body: { status: "queued" } }),
    () => ({ status: 500, body: "no" }),
    () => never,
    () => undefined,
  ];
  upstream.play = () => plays[asked++ % plays.length]!();
  const { counts } = startSink(connection, target);
  const frames = randomFrames(numbersFrom(22), { count: 16 });
  await storeFrames(connection, frames);
  await expect.poll(() => counts.events, within).toBeGreaterThan(0);
  await upstream.stop();
  await storeFrames(
    connection,
    frames.slice(0, 1).map((one) => ({ ...one, messageId: "late" })),
  );
  await expect.poll(() => target.faults.join(), within).toMatch(/ECONNREFUSED/);
  expect(target.waiting).toBeGreaterThan(0);
  await upstream.start();
  const sent = sentUuids([...frames, ...frames.slice(0, 1)]);
  await expect.poll(() => counts.events, within).toBe(Object.values(sent).flat().length);
  // The sink repeats requests that the upstream accepts but answers too late.
  expect(eachOnce(takenUuids(upstream))).toEqual(eachOnce(sent));
  expect(asideIn(folder)).toEqual([]);
  expect(target.faults).toEqual([]);
});

test("the PostHog sink rejects an event that the upstream rejects", async () => {
  const folder = newFolder();
  upstream.play = (request) =>
    hasBad(request) ? { status: 400, body: "a number is out of range" } : undefined;
  const frame = frameOf(
    "shop",
    Array.from({ length: 33 }, (_, n) => ({ properties: { n, bad: n === 11 || n === 12 } })),
  );
  await storeFrames(connection, [frame]);
  const { counts } = startSink(connection, targetTo(upstream, { folder }));
  await expect.poll(() => counts.events, within).toBe(31);
  expect(counts.rejected).toBe(2);
  const bad = frame.events.slice(11, 13).map(({ uuid }) => uuid);
  const aside = asideIn(folder);
  const records = aside.map(({ record }) => (JSON.parse(String(record)) as { uuid: string }).uuid);
  expect(records).toEqual(bad);
  expect(aside[0]).toMatchObject({
    project_id: "shop",
    stream: "PENSTOCK_LIVE_0",
    line: 11,
    reason: "value",
    detail: "400: a number is out of range",
  });
  const expected = frame.events.map(({ uuid }) => uuid).filter((uuid) => !bad.includes(uuid));
  expect(upstream.events().map(({ uuid }) => uuid)).toEqual(expected);
});

test("the PostHog sink splits requests to the upstream's limit", async () => {
  const folder = newFolder();
  const limit = 150_000;
  upstream.play = ({ bytes }) => (bytes > limit ? { status: 413, body: "too large" } : undefined);
  const frame = frameOf(
    "shop",
    Array.from({ length: 40 }, (_, n) => ({ properties: { n, text: "x".repeat(20_000) } })),
  );
  const huge = frameOf("shop", [{ properties: { text: "x".repeat(2 * limit) } }]);
  await storeFrames(connection, [frame, huge, frameOf("shop", [{}])]);
  const { counts } = startSink(connection, targetTo(upstream, { folder }), {
    limits: { eventsMax: 100, bytesMax: 8_388_608, ageMsMax: 200 },
  });
  await expect.poll(() => counts.events, within).toBe(41);
  expect(counts.rejected).toBe(1);
  expect(asideIn(folder).map(({ detail }) => detail)).toEqual(["413: too large"]);
  const refused = upstream.requests.filter(({ bytes }) => bytes > limit).length;
  await storeFrames(connection, [{ ...frame, messageId: "again" }]);
  await expect.poll(() => counts.events, within).toBe(81);
  expect(upstream.requests.filter(({ bytes }) => bytes > limit).length).toBe(refused);
});

test("the PostHog sink stops only the project whose key is rejected", async () => {
  const folder = newFolder();
  const target = targetTo(upstream, { folder });
  const { counts, writer } = startSink(connection, target);
  for (const [status, body] of [
    [401, "API key is not valid: key-closed"],
    [403, "no"],
    [404, "no such page"],
    [302, ""],
    [200, { status: "Ok", quota_limited: ["events"] }],
  ] as const) {
    const before = counts.events;
    upstream.play = ({ body: { api_key: key } }) =>
      key === "key-closed" ? { status, body } : undefined;
    await storeFrames(connection, [frameOf("closed", [{}]), frameOf("open", [{}, {}])]);
    await expect.poll(() => target.faults.join(), within).toMatch(`closed: ${status}: `);
    expect(target.faults.join()).not.toContain("key-closed");
    expect(writer.status(Date.now()).state).toBe("hindered");
    await expect.poll(() => upstream.events("key-open").length, within).toBe((before / 3) * 2 + 2);
    upstream.play = () => undefined;
    await expect.poll(() => counts.events, within).toBe(before + 3);
    expect(writer.status(Date.now()).reasons).toEqual([]);
  }
  expect(asideIn(folder)).toEqual([]);
});

test("the PostHog sink continues with other projects while one waits", async () => {
  upstream.play = ({ body: { api_key: key } }) =>
    key === "key-slow" ? { status: 503 } : undefined;
  const target = targetTo(upstream);
  const { counts, writer } = startSink(connection, target, {
    limits: { eventsMax: 2, bytesMax: 1_048_576, ageMsMax: 20 },
  });
  const pairs = Array.from({ length: 12 }, () => [frameOf("slow", [{}]), frameOf("fast", [{}])]);
  await storeFrames(connection, pairs.flat());
  await expect.poll(() => upstream.events("key-fast").length, within).toBe(4);
  await expect.poll(() => writer.framesBytes, within).toBeGreaterThan(0);
  expect(counts.events).toBe(0);
  upstream.play = () => undefined;
  await expect.poll(() => counts.events, within).toBe(24);
  expect(takenUuids(upstream)).toEqual(sentUuids(pairs.flat()));
});

test("an event of a stopped project blocks the PostHog sink after several batches", async () => {
  const others = Array.from({ length: 8 }, (_, n) => `other-${n}`);
  const isTaken = new Set(["fast"]);
  const keyOf = async (project: string) => (isTaken.has(project) ? `key-${project}` : undefined);
  const target = targetTo(upstream, { keyOf });
  const { counts } = startSink(connection, target, {
    limits: { eventsMax: 1, bytesMax: 1_048_576, ageMsMax: 20 },
  });
  const names = ["removed", "fast", "fast", ...others, "fast"];
  const frames = names.map((name) => frameOf(name, [{}]));
  await storeFrames(connection, frames.slice(0, 3));
  await expect.poll(() => upstream.events("key-fast").length, within).toBe(2);
  const why = "no key is known: add the project again, or start with --key removed=<key>";
  expect(target.faults).toEqual([`removed: ${why}`]);
  await storeFrames(connection, frames.slice(3));
  const held = `removed (all projects wait for it): ${why}`;
  await expect.poll(() => target.faults[0], within).toBe(held);
  expect(target.faults.length).toBe(2);
  expect(counts.events).toBe(0);
  isTaken.add("removed");
  await expect.poll(() => target.faults.join(), within).toMatch(/^other-0 \(all projects/);
  for (const other of others) isTaken.add(other);
  await expect.poll(() => counts.events, within).toBe(names.length);
  expect(target.faults).toEqual([]);
  expect(takenUuids(upstream)).toEqual(sentUuids(frames));
});

test("the PostHog sink rejects a stopped project's events that block other projects", async () => {
  const folder = newFolder();
  upstream.play = ({ body: { api_key: key } }) =>
    key === "key-closed" ? { status: 401, body: "API key is not valid" } : undefined;
  const pauses = { msMin: 10, msMax: 50, stoppedMs: 50, rejectAfterMs: 100 };
  const target = targetTo(upstream, { folder, limits: { pauses } });
  const { counts, writer } = startSink(connection, target, {
    limits: { eventsMax: 2, bytesMax: 1_048_576, ageMsMax: 20 },
  });
  const pairs = Array.from({ length: 12 }, () => [frameOf("closed", [{}]), frameOf("open", [{}])]);
  await storeFrames(connection, pairs.flat());
  await expect.poll(() => counts.events, within).toBe(12);
  expect(upstream.events("key-open").length).toBe(12);
  expect(counts.rejected).toBe(12);
  const put = { project_id: "closed", detail: "401: API key is not valid" };
  expect(asideIn(folder)).toMatchObject(Array.from({ length: 12 }, () => put));
  expect(writer.status(Date.now()).reasons.join()).toContain("closed: 401: API key is not valid");
  upstream.play = () => undefined;
  await storeFrames(connection, [frameOf("closed", [{}])]);
  await expect.poll(() => counts.events, within).toBe(13);
  expect(target.faults).toEqual([]);
  expect(counts.rejected).toBe(12);
});

test("the PostHog sink rejects nothing while the upstream accepts no event", async () => {
  const folder = newFolder();
  upstream.play = () => ({ status: 401, body: "no" });
  const pauses = { msMin: 10, msMax: 50, stoppedMs: 20, rejectAfterMs: 20 };
  const target = targetTo(upstream, { folder, limits: { pauses } });
  const { counts } = startSink(connection, target, {
    limits: { eventsMax: 2, bytesMax: 1_048_576, ageMsMax: 20 },
  });
  const pairs = Array.from({ length: 6 }, () => [frameOf("one", [{}]), frameOf("two", [{}])]);
  await storeFrames(connection, pairs.flat());
  await expect.poll(() => upstream.requests.length, within).toBeGreaterThan(40);
  expect(asideIn(folder)).toEqual([]);
  upstream.play = () => undefined;
  await expect.poll(() => counts.events, within).toBe(12);
});

test.each([
  ["refuses everything", "400: no", () => ({ status: 400, body: "no" })],
  [
    "names every event as dropped",
    "invalid_event: no",
    ({ body: { batch } }: UpstreamRequest) => {
      const errors = batch.map((_, index) => ({ index, code: "invalid_event", detail: "no" }));
      return { status: 200, body: { status: 1, dropped: batch.length, errors } };
    },
  ],
])(
  "the PostHog sink stops at an upstream that %s, unless --accept-refused is set",
  async (_, why, play) => {
    const folder = newFolder();
    upstream.play = play;
    const events = Array.from({ length: 20 }, () => ({}));
    await storeFrames(connection, [frameOf("shop", events)]);
    const limits = { refusedMax: 8 };
    const stopped = targetTo(upstream, { folder, limits });
    const first = startSink(connection, stopped);
    const message = new RegExp(
      `the upstream has refused 8 events in a row, the last with ${why}. .*--accept-refused`,
    );
    await expect.poll(() => stopped.faults.join(), within).toMatch(message);
    await first.writer.close();
    await stopped.close();
    expect(asideIn(folder)).toEqual([]);
    const { counts } = startSink(
      connection,
      targetTo(upstream, { folder, limits, acceptRefused: true }),
    );
    await expect.poll(() => counts.rejected, within).toBe(20);
    expect(asideIn(folder).length).toBe(20);
  },
);

test("the PostHog sink never sends lines that are not records", async () => {
  const folder = newFolder();
  const events = [{}, {}, { uuid: almostUuid }];
  const frame = withProperties(frameOf("shop", events), ['{"fine":1}', "{broken", "{}"]);
  await storeFrames(connection, [frame]);
  const { counts } = startSink(connection, targetTo(upstream, { folder }));
  await expect.poll(() => counts.events, within).toBe(1);
  expect(asideIn(folder)).toMatchObject([
    { line: 1, reason: "not_json" },
    { line: 2, reason: "not_a_record" },
  ]);
});

test("the PostHog sink reports a project's key that the upstream does not know", async () => {
  upstream.unknownKeys.add("key-typo");
  const target = targetTo(upstream);
  const { counts } = startSink(connection, target);
  await storeFrames(connection, [frameOf("typo", [{}]), frameOf("shop", [{}])]);
  await expect.poll(() => counts.events, within).toBe(2);
  await expect
    .poll(() => target.warnings.join(), within)
    .toMatch(/does not know the keys of typo\. PostHog returns/);
});

test("a PostHog sink that takes over retries after two 503 answers", async () => {
  const target = targetTo(upstream);
  await startSink(connection, target).writer.close();
  let refused = 0;
  upstream.play = () => (refused++ < 2 ? { status: 503 } : undefined);
  const heard: (number | undefined)[] = [];
  startSink(connection, target, { onWrite: (counts) => heard.push(counts?.outcome.written) });
  await storeFrames(connection, [frameOf("shop", [{}])]);
  await expect.poll(() => heard, within).toContain(1);
  // A commit may have moved a position past messages without events.
  expect(heard.filter((written) => written !== 0)).toEqual([1]);
});
