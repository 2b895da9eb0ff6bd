// A frame omits events that an earlier frame has delivered. So it is acknowledged only after the
// earlier frame.

import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import type { TestFrame } from "../../kit/stored-events.ts";
import {
  frameOf,
  framesOf,
  freshStreams,
  idsOf,
  makeAnew,
  reader,
  stored,
  types,
} from "./consumer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const live = "PENSTOCK_LIVE_0";
const lanes = ["live"] as const;

function again(frame: TestFrame, more: Partial<TestFrame> = {}): TestFrame {
  return { ...frame, messageId: `${frame.messageId}-again`, ...more };
}

function partlyAgain(frame: TestFrame): TestFrame {
  const own = frameOf("shop");
  return { ...own, events: [...frame.events, ...own.events] };
}

async function infoOf(connection: NatsConnection, durable: string) {
  return await (await jetstreamManager(connection)).consumers.info(live, durable);
}

async function remove(connection: NatsConnection, sequence: number): Promise<void> {
  await (await jetstreamManager(connection)).streams.deleteMessage(live, sequence);
}

test("a duplicate is delivered if its first frame was lost unacknowledged", async () => {
  const connection = await freshStreams(nats);
  const [first, last] = [frameOf("shop"), frameOf("shop")];
  await stored(connection, [first, again(first), last]);
  const one = reader(nats, { lanes, durable: "whole" });
  const [inWork, behind] = await one.take(2);
  expect(idsOf([inWork!, behind!])).toEqual([first.messageId, last.messageId]);
  behind!.ack();
  await one.consumer.stop({ timeoutMs: 0 });
  await remove(connection, 1);
  const later = await stored(connection, framesOf(1));
  const two = reader(nats, { lanes, durable: "whole" });
  expect(idsOf(await two.takeAndAck(2))).toEqual([first.messageId, ...later]);
});

test("a frame with duplicates is redelivered whole if the first frame was lost", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  const second = partlyAgain(first);
  await stored(connection, [first, second]);
  const one = reader(nats, { lanes, durable: "partly" });
  const [, partly] = await one.take(2);
  expect([idsOf([partly!]), partly!.duplicates]).toEqual([[second.events[1]!.uuid], 1]);
  partly!.ack();
  await one.consumer.stop({ timeoutMs: 0 });
  await remove(connection, 1);
  const two = reader(nats, { lanes, durable: "partly" });
  expect(idsOf(await two.takeAndAck(1))).toEqual(second.events.map(({ uuid }) => uuid));
});

test("a recreated stream's events are delivered again unless they were acknowledged", async () => {
  const connection = await freshStreams(nats);
  const frames = framesOf(3);
  const one = reader(nats, { lanes, durable: "recreated" });
  const ids = await stored(connection, frames);
  await one.take(3);
  await makeAnew(connection);
  await stored(
    connection,
    frames.map((frame) => again(frame)),
  );
  const last = await stored(connection, framesOf(1));
  const [behind] = await one.take(1);
  expect(idsOf([behind!])).toEqual(last);
  behind!.ack();
  await one.consumer.stop({ timeoutMs: 0 });
  const two = reader(nats, { lanes, durable: "recreated" });
  expect(idsOf(await two.takeAndAck(3))).toEqual(ids);
});

test("a frame with duplicates is acknowledged together with the first frame", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  await stored(connection, [first, again(first), partlyAgain(first), frameOf("shop")]);
  const { take } = reader(nats, { lanes, durable: "released" });
  const frames = await take(3);
  for (const frame of frames.slice(1)) frame.ack();
  const pending = async () => (await infoOf(connection, "released")).num_ack_pending;
  await expect.poll(pending).toBe(3);
  frames[0]!.ack();
  await expect.poll(pending).toBe(0);
});

test("frames with duplicates wait for the redelivery of the first frame", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  const second = partlyAgain(first);
  await stored(connection, [first, again(first), second, frameOf("shop")]);
  const { take } = reader(nats, { lanes, durable: "handed_back" });
  const [one, partly, last] = await take(3);
  partly!.ack();
  one!.nak();
  const frames = await take(2);
  expect(idsOf(frames)).toEqual([first.messageId, ...idsOf([last!])]);
  frames[1]!.ack();
  const pending = async () => (await infoOf(connection, "handed_back")).num_ack_pending;
  await expect.poll(pending).toBe(3);
  frames[0]!.ack();
  await expect.poll(pending).toBe(0);
});

test("a frame that waits for a frame in progress does not time out", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  await stored(connection, [first, again(first), partlyAgain(first), frameOf("shop")]);
  const { take, notices } = reader(nats, { lanes, durable: "long", processingTimeoutMs: 2_000 });
  const frames = await take(3);
  for (const frame of frames.slice(1)) frame.ack();
  const startedMs = performance.now();
  const worksOn = () => {
    frames[0]!.working();
    return performance.now() - startedMs;
  };
  await expect.poll(worksOn, { timeout: 15_000 }).toBeGreaterThan(6_500);
  expect(types(notices)).toEqual(["consumer_created"]);
  expect((await infoOf(connection, "long")).num_ack_pending).toBe(3);
});

test("duplicates do not reduce the maximum of held frames", async () => {
  const connection = await freshStreams(nats);
  const [first, second, ...more] = framesOf(4);
  const twice = [first!, again(first!), second!, again(second!)];
  await stored(connection, [...twice, ...more]);
  const gathering = { lanes, durable: "full", maxAckPending: 4 };
  const { take, takeAndAck } = reader(nats, gathering);
  const frames = await take(4);
  const ids = [first!, second!].map(({ messageId }) => messageId);
  expect(idsOf(frames)).toEqual([...ids, ...ids]);
  expect(frames.map(({ redelivered }) => redelivered)).toEqual([false, false, true, true]);
  const floor = async () => (await infoOf(connection, "full")).ack_floor.stream_seq;
  for (const frame of frames) frame.ack();
  await expect.poll(floor).toBe(4);
  expect(idsOf(await takeAndAck(2))).toEqual(more.map(({ messageId }) => messageId));
});

test("stop() waits for the first frame with a duplicated event", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  await stored(connection, [first, again(first), frameOf("shop")]);
  const { take, consumer } = reader(nats, { lanes, durable: "stopping" });
  const [one, last] = await take(2);
  const stopped = consumer.stop();
  last!.ack();
  one!.ack();
  await stopped;
  const { ack_floor: floor } = await infoOf(connection, "stopping");
  expect(floor.stream_seq).toBe(3);
});

test("stop() waits for a deleted stream's frame that other frames need", async () => {
  const connection = await freshStreams(nats);
  const frame = frameOf("shop");
  await stored(connection, [frame]);
  const { take, consumer } = reader(nats, { lanes, durable: "lost" });
  const [lost] = await take(1);
  await makeAnew(connection);
  await stored(connection, [again(frame), frameOf("shop")]);
  const [last] = await take(1);
  last!.ack();
  let isStopped = false;
  const stopped = consumer.stop().then(() => {
    isStopped = true;
  });
  await expect.poll(async () => (await infoOf(connection, "lost")).num_ack_pending).toBe(1);
  expect(isStopped).toBe(false);
  lost!.ack();
  await stopped;
  expect((await infoOf(connection, "lost")).ack_floor.stream_seq).toBe(2);
});

test("two frames with duplicates of each other are both acknowledged", async () => {
  const connection = await freshStreams(nats);
  const [one, other, filler] = framesOf(3);
  const first = frameOf("shop", { events: [...one!.events, ...other!.events] });
  const second = again(first, { events: [...other!.events, ...one!.events] });
  await stored(connection, [first, filler!, second]);
  const deduplication = { maxUuids: 2 };
  const { take } = reader(nats, { lanes, durable: "each_other", deduplication });
  const [a, , b] = await take(3);
  expect(idsOf([b!])).toEqual([one!.messageId]);
  a!.nak();
  const frames = await take(3);
  for (const frame of frames) frame.ack();
  const floor = async () => (await infoOf(connection, "each_other")).ack_floor.stream_seq;
  await expect.poll(floor).toBe(3);
});

test("stop() does not wait for duplicates of a returned frame", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  await stored(connection, [first, again(first), frameOf("shop")]);
  const { take, consumer } = reader(nats, { lanes, durable: "no_hold_up" });
  const [one, last] = await take(2);
  last!.ack();
  one!.nak();
  const startedMs = performance.now();
  await consumer.stop();
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  const { ack_floor: floor, num_ack_pending: pending } = await infoOf(connection, "no_hold_up");
  expect([floor.stream_seq, pending]).toEqual([0, 2]);
});

test("the next frame is delivered after a late acknowledgement", async () => {
  const connection = await freshStreams(nats);
  const first = frameOf("shop");
  const frames = [first, ...framesOf(6), partlyAgain(first), frameOf("shop")];
  await stored(connection, frames);
  const { take } = reader(nats, { lanes, durable: "late_ack", maxAckPending: 8 });
  const inHand = await take(8);
  inHand[7]!.nak();
  inHand[1]!.ack();
  const pending = async () => (await infoOf(connection, "late_ack")).num_ack_pending;
  await expect.poll(pending).toBe(7);
  inHand[7]!.ack();
  expect((await take(1))[0]!.sequence).toBe(9);
});
