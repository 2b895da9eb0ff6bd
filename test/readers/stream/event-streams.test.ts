import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Position } from "../../../src/readers/effects/types.ts";
import { effectsWords } from "../../../src/readers/effects/writer/applier.ts";
import { Reached, streamProgress } from "../../../src/readers/effects/writer/progress.ts";
import { Batch } from "../../../src/readers/effects/writer/transaction.ts";
import { EventStreams } from "../../../src/readers/stream/event-streams.ts";
import { storedStream } from "../../../src/readers/stream/stored-stream.ts";
import type { StreamItem } from "../../../src/readers/stream/stream-reader.ts";
import { startNatsServer, type TestNatsServer, untilStreamsGone } from "../../kit/nats-server.ts";
import { silent } from "../../kit/processes.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../kit/stored-events.ts";

let nats: TestNatsServer;
let connection: NatsConnection;

beforeAll(async () => {
  nats = await startNatsServer({ syncInterval: "2m" });
  connection = await connect({ servers: nats.url, maxReconnectAttempts: -1, pingInterval: 500 });
});

afterAll(async () => {
  await connection.close();
  await nats.remove();
});

const text = "x".repeat(1_000);
let messages = 0;

function frame(projectId: string, more: Partial<TestFrame> = {}): TestFrame {
  const messageId = `m${++messages}`;
  const events = [{ uuid: messageId, distinctId: text, receivedAtMs: 1_000 * messages }];
  return { lane: "live", projectId, messageId, events, ...more };
}

function frames(count: number, more: Partial<TestFrame> = {}): TestFrame[] {
  return Array.from({ length: count }, () => frame("p", more));
}

async function freshStreams(): Promise<void> {
  const manager = await jetstreamManager(connection);
  const names: string[] = [];
  for await (const name of manager.streams.names("penstock.>")) names.push(name);
  for (const name of names) await manager.streams.delete(name);
  await untilStreamsGone(nats, names);
  await makeStreams(connection);
}

function reading(bytesMax = 67_108_864): EventStreams {
  const streams = new EventStreams({
    connection,
    prefix: "penstock",
    positions: new Map(),
    acceptExpired: false,
    bytesMax,
    log: silent,
    reader: "effects",
    words: effectsWords,
  });
  void (async () => {
    for await (const { type } of connection.status()) {
      if (type === "disconnect" || type === "staleConnection") streams.interrupt();
    }
  })();
  onTestFinished(() => streams.close());
  return streams;
}

function words(item: StreamItem): string[] {
  if (item.kind === "frame") return [`${item.frame.epoch} ${item.frame.messageId}`];
  return item.incidents.map(({ kind }) => kind);
}

async function taken(streams: EventStreams, count: number): Promise<string[]> {
  const said: string[] = [];
  while (said.length < count) {
    await streams.ready();
    await new Promise((resolve) => setImmediate(resolve));
    for (const item of streams.take(10, 1_000_000)) {
      said.push(...words(item));
      if (item.kind === "frame") item.release();
    }
  }
  return said;
}

test("every message is read once and in order through lost connections", async () => {
  await freshStreams();
  const streams = reading();
  const before = frames(40);
  await storeFrames(connection, before);
  const first = await taken(streams, 40);
  await connection.reconnect();
  const between = frames(40);
  await storeFrames(connection, between);
  await nats.restart();
  await expect.poll(() => connection.isClosed()).toBe(false);
  const behind = frames(40);
  await storeFrames(connection, behind);
  const rest = await taken(streams, 80);
  const ids = [...before, ...between, ...behind].map(({ messageId }) => `1 ${messageId}`);
  expect([...first, ...rest]).toEqual(ids);
});

test("a large lag is reported while more messages wait than fit in memory", async () => {
  await freshStreams();
  await storeFrames(connection, frames(100));
  const streams = reading(40_000);
  await expect.poll(() => streams.isFarBehind).toBe(true);
  await taken(streams, 100);
  expect(streams.isFarBehind).toBe(false);
  await storeFrames(connection, frames(1));
  await streams.ready();
  expect(streams.isFarBehind).toBe(false);
});

test("reading stays within its memory budget", async () => {
  await freshStreams();
  await storeFrames(connection, frames(300, { lane: "historical" }));
  const roomBytes = 40_000;
  const streams = reading(roomBytes);
  const full = () =>
    streams.readers.some(({ name, isReady }) => name.lane === "historical" && isReady);
  await expect.poll(full).toBe(true);
  await storeFrames(connection, frames(2));
  await expect
    .poll(() => streams.readers.some(({ name, isReady }) => name.lane === "live" && isReady))
    .toBe(true);
  // The server counts each message with the largest possible size, so slightly more bytes may
  // arrive.
  expect(streams.bytesInHand).toBeLessThan(2 * roomBytes);
  expect(await taken(streams, 302)).toHaveLength(302);
  expect(streams.bytesInHand).toBe(0);
});

test("a stream that is recreated during reading continues in a new epoch", async () => {
  await freshStreams();
  const streams = reading();
  await storeFrames(connection, frames(3));
  await taken(streams, 3);
  await freshStreams();
  const recreated = frames(2);
  await storeFrames(connection, recreated);
  const ids = recreated.map(({ messageId }) => `2 ${messageId}`);
  expect(await taken(streams, 3)).toEqual(["stream_made_anew", ...ids]);
});

test("a stream that was read to its end may be removed", async () => {
  await freshStreams();
  const streams = reading();
  await storeFrames(connection, [frame("p"), frame("p", { lane: "historical" })]);
  await taken(streams, 2);
  const manager = await jetstreamManager(connection);
  const shown = (): unknown =>
    streams.readers.map(({ name, fault }) => (fault === undefined ? name.lane : fault));
  await expect.poll(shown).toEqual(["live", "historical"]);
  await manager.streams.delete("PENSTOCK_HISTORICAL_0");
  await expect.poll(shown).toEqual(["live"]);
  const next = frame("p");
  await storeFrames(connection, [next]);
  expect(await taken(streams, 1)).toEqual([`1 ${next.messageId}`]);
  await makeStreams(connection);
  const again = frame("p", { lane: "historical" });
  await storeFrames(connection, [again]);
  expect(await taken(streams, 2)).toEqual(["stream_made_anew", `2 ${again.messageId}`]);
  expect(shown()).toEqual(["live", "historical"]);
});

test("a stream that is removed before its end was read causes an error", async () => {
  await freshStreams();
  // There is room for one message, so the next one is requested when it is released.
  const streams = reading(1);
  await storeFrames(connection, frames(10));
  await expect.poll(() => streams.bytesInHand).toBeGreaterThan(0);
  const live = () => streams.readers.find(({ name }) => name.stream === "PENSTOCK_LIVE_0");
  await expect.poll(() => live()?.lastSequence).toBe(10);
  await (await jetstreamManager(connection)).streams.delete("PENSTOCK_LIVE_0");
  onTestFinished(() => untilStreamsGone(nats, ["PENSTOCK_LIVE_0"]));
  await taken(streams, 1);
  await expect
    .poll(() => live()?.fault)
    .toMatch(/^the stream does not exist, and 9 of its messages were not read/);
});

test("new messages are read when the server returns with an older copy", async () => {
  await freshStreams();
  const streams = reading();
  await storeFrames(connection, frames(3));
  const copy = mkdtempSync(path.join(tmpdir(), "penstock-test-copy-"));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  await nats.stop();
  cpSync(nats.storeDir, copy, { recursive: true });
  await nats.restart();
  await storeFrames(connection, frames(4));
  await taken(streams, 7);
  await nats.stop();
  rmSync(nats.storeDir, { recursive: true });
  cpSync(copy, nats.storeDir, { recursive: true });
  await nats.restart();
  const later = frames(6);
  const sequences = await storeFrames(connection, later);
  expect(sequences[0]).toBe(4);
  const ids = later.map(({ messageId }) => `2 ${messageId}`);
  const all = await taken(streams, 7);
  expect(all).toEqual(["tail_lost", ...ids]);
});

test("a message with an unknown schema stops only its own stream", async () => {
  await freshStreams();
  const manager = await jetstreamManager(connection);
  const some = frames(5);
  await storeFrames(connection, some);
  await manager.streams.deleteMessage("PENSTOCK_LIVE_0", 3);
  await storeFrames(connection, [frame("p", { schema: "2" }), frame("p")]);
  const old = frame("p", { lane: "historical" });
  await storeFrames(connection, [old]);
  const streams = reading();
  const said = await taken(streams, 6);
  expect(said.filter((one) => one !== `1 ${old.messageId}`)).toEqual([
    ...[0, 1, 3, 4].map((at) => `1 ${some[at]!.messageId}`),
    "unknown_schema",
  ]);
  await expect
    .poll(() => streams.readers.find(({ name }) => name.lane === "live")?.fault)
    .toContain('has the schema "2"');
});

test("the lag is the age of the oldest uncommitted message", async () => {
  await freshStreams();
  const streams = reading();
  await storeFrames(connection, frames(2));
  await taken(streams, 2);
  const reader = streams.readers.find(({ name }) => name.lane === "live")!;
  const reached = new Reached();
  const weekAgoMs = Date.now() - 7 * 86_400_000;
  const position: Position = {
    ...reader.name,
    epoch: 1,
    created: "",
    sequence: 1,
    trail: [],
    duplicatesFrom: [0, 0],
    watermarkMs: weekAgoMs,
  };
  const manager = await jetstreamManager(connection);
  const stored = storedStream(manager, reader.name.stream);
  const storedAtMs = async (sequence: number) => (await stored.message(sequence))!.storedAtMs;
  const nowMs = Date.now() + 1_000;
  let batches: Batch[] = [];
  const progress = () => streamProgress(reader, { reached, batches, nowMs });
  reached.begin([position]);
  // The progress contains only the applied position.
  expect(progress()).toMatchObject({ lastSequence: 2, lagSeconds: (nowMs - weekAgoMs) / 1_000 });
  reached.reach([{ ...position, sequence: 2 }]);
  expect(progress().lagSeconds).toBe(0);
  await storeFrames(connection, frames(2));
  await expect.poll(() => progress().lastSequence).toBe(4);
  const since = (nowMs - (await storedAtMs(3))) / 1_000;
  expect(progress().lagSeconds).toBe(since);
  const batch = new Batch();
  batch.add(reader.take(1, 1));
  batch.add(reader.take(1, 1));
  batches = [new Batch(), batch];
  expect(progress().lagSeconds).toBe(since);
  batch.committed();
  reached.reach([{ ...position, sequence: 4 }]);
  expect(progress().lagSeconds).toBe(0);
  await nats.stop();
  onTestFinished(() => nats.restart());
  await expect
    .poll(progress)
    .toMatchObject({ sequence: 4, lastSequence: undefined, lagSeconds: undefined });
});
