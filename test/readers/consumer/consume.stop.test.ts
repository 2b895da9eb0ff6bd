import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { storedLine } from "../../kit/stored-events.ts";
import { frameOf, framesOf, freshStreams, idsOf, reader, stored, types } from "./consumer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const live = "PENSTOCK_LIVE_0";

test("a stopped consumer accepts acknowledgements of delivered frames", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, framesOf(10));
  const { take, consumer } = reader(nats, { durable: "stopped" });
  const frames = await take(4);
  let isStopped = false;
  const stopped = consumer.stop().then(() => {
    isStopped = true;
  });
  expect(await consumer.next()).toEqual({ done: true, value: undefined });
  expect(isStopped).toBe(false);
  for (const frame of frames) frame.ack();
  await stopped;
  const manager = await jetstreamManager(connection);
  const { ack_floor: floor } = await manager.consumers.info(live, "stopped");
  expect(floor.stream_seq).toBe(4);
});

test("stop() ends a consumer that waits for frames", async () => {
  await freshStreams(nats);
  const { consumer, notices } = reader(nats);
  await expect.poll(() => types(notices)).toContain("consumer_created");
  const next = consumer.next();
  await consumer.stop();
  expect(await next).toEqual({ done: true, value: undefined });
});

test("stop() ends a consumer that never reached NATS", async () => {
  const { consumer, notices } = reader(nats, { nats: { servers: "127.0.0.1:1" } });
  await expect.poll(() => types(notices)).toEqual(["disconnected"]);
  await consumer.stop();
  expect(await consumer.next()).toEqual({ done: true, value: undefined });
});

test("stop() ends a consumer while its address is being looked up", async () => {
  let asked = 0;
  const address = () => {
    asked++;
    return new Promise<never>(() => {});
  };
  const { consumer } = reader(nats, { nats: address });
  await expect.poll(() => asked).toBe(1);
  await consumer.stop();
  expect(await consumer.next()).toEqual({ done: true, value: undefined });
});

test("a frame that is not acknowledged in time is redelivered", async () => {
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(3));
  const { take, takeAndAck, notices } = reader(nats, { processingTimeoutMs: 500 });
  const [first] = await take(3);
  first!.ack();
  const again = await takeAndAck(2);
  expect(idsOf(again)).toEqual(ids.slice(1));
  const notice = { type: "processing_timed_out", stream: live, sequence: 2 };
  expect(notices).toContainEqual(notice);
});

test("the server does not redeliver a frame in progress", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, framesOf(2));
  const { take, notices } = reader(nats, { durable: "slow", ackWaitMs: 1_000 });
  const [held] = await take(2);
  const manager = await jetstreamManager(connection);
  const info = () => manager.consumers.info(live, "slow");
  const started = performance.now();
  await expect.poll(() => performance.now() - started).toBeGreaterThan(3_000);
  expect((await info()).num_redelivered).toBe(0);
  held!.ack();
  await expect.poll(async () => (await info()).num_ack_pending).toBe(1);
  expect(types(notices)).not.toContain("processing_timed_out");
});

test("a consumer sends one notice per frame and reason for invalid lines", async () => {
  const connection = await freshStreams(nats);
  const line = (uuid: string) =>
    storedLine({ uuid, distinctId: "d", receivedAtMs: 0 }, "shop", "live");
  const broken = Array.from({ length: 50 }, (_, nth) => `${"x".repeat(nth + 1)}\n \t\r\n\n`).join(
    "",
  );
  const text = `\n${line("a")}\n{"uuid":\n[]\n${broken}7\n${line("b")}\n\n`;
  const [, own] = await stored(connection, [frameOf("shop", { text }), frameOf("shop")]);
  await stored(connection, [frameOf("shop", { text: "no JSON\n\n\n" })]);
  const { takeAndAck, notices, consumer } = reader(nats, { durable: "poison" });
  expect(idsOf(await takeAndAck(2))).toEqual(["a", "b", own]);
  const reported = () => notices.filter((one) => one.type === "unreadable_line");
  const waiting = consumer.next();
  await expect.poll(() => reported().length).toBe(4);
  expect(reported().map(({ sequence, line: at, lines }) => [sequence, at, lines])).toEqual([
    [1, 3, 51],
    [1, 4, 1],
    [1, 155, 1],
    [3, 1, 1],
  ]);
  const manager = await jetstreamManager(connection);
  const floor = async () => (await manager.consumers.info(live, "poison")).ack_floor.stream_seq;
  await expect.poll(floor).toBe(3);
  await consumer.stop();
  await waiting;
});

test("a consumer omits a repeated event within the deduplication window", async () => {
  const connection = await freshStreams(nats);
  const one = frameOf("shop");
  const again = { ...one, messageId: `${one.messageId}-again` };
  const elsewhere = frameOf("other", { events: one.events });
  const twice = frameOf("shop", { events: [...frameOf("shop").events, ...one.events] });
  await stored(connection, [one, again, elsewhere, twice]);
  const { takeAndAck } = reader(nats);
  const frames = await takeAndAck(3);
  const uuid = one.messageId;
  expect(idsOf(frames)).toEqual([uuid, uuid, twice.events[0]!.uuid]);
  expect(frames.map(({ duplicates }) => duplicates)).toEqual([0, 0, 1]);
});
