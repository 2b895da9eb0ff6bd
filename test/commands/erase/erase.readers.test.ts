import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { PostgresTarget } from "../../../src/readers/sinks/postgres/postgres-target.ts";
import { natsServerForFile, postgresForFile } from "../../kit/for-file.ts";
import { asked } from "../../kit/postgres-rows.ts";
import { eventsAt, sinkSchema } from "../../kit/sink-events.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { freshStreams, idsOf, reader, types } from "../../readers/consumer/consumer-kit.ts";
import { startSink } from "../../readers/sinks/sink-kit.ts";
import { addProjects, erased, eventOf, frameOf } from "./erase-kit.ts";

const nats = await natsServerForFile();
const postgres = await postgresForFile();

const ids = ["person-to-erase"];
const hers = () => eventOf(ids[0]!);

test("a consumer receives a rewritten message once", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const [first, second, third] = [eventOf("bob"), eventOf("eve"), eventOf("zoe")];
  await storeFrames(connection, [frameOf([hers(), first]), frameOf([second, hers()])]);
  const ahead = reader(nats);
  await ahead.takeAndAck(2);
  const durable = "was_behind";
  const before = reader(nats, { durable });
  await before.takeAndAck(1);
  await before.consumer.stop({ timeoutMs: 0 });
  await untilAcked(connection, [durable, 1]);

  await erased({ natsUrl: nats.url, ids });
  await storeFrames(connection, [frameOf([third])]);
  expect(idsOf(await ahead.takeAndAck(1))).toEqual([third.uuid]);
  expect(types(ahead.notices)).toEqual(["consumer_created", "consumer_created"]);
  expect(idsOf(await reader(nats, { durable }).takeAndAck(2))).toEqual([second.uuid, third.uuid]);
  const uuids = [first.uuid, second.uuid, third.uuid];
  expect(idsOf(await reader(nats).takeAndAck(3))).toEqual(uuids);
});

test("a consumer never receives events again after erasures", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const [second, last] = [eventOf("zoe"), eventOf("zoe")];
  await storeFrames(connection, [frameOf([hers(), eventOf("bob"), eventOf("eve")])]);
  await storeFrames(connection, [frameOf([second])]);
  const durable = "erased_twice";
  const before = reader(nats, { durable });
  await before.takeAndAck(1);
  await before.consumer.stop({ timeoutMs: 0 });
  await untilAcked(connection, [durable, 1]);

  await erased({ natsUrl: nats.url, ids });
  await erased({ natsUrl: nats.url, ids: ["bob"] });
  await storeFrames(connection, [frameOf([last])]);
  expect(idsOf(await reader(nats, { durable }).takeAndAck(2))).toEqual([second.uuid, last.uuid]);
});

test("an event is not lost if its message is rewritten during processing", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const [first, second, third] = [eventOf("bob"), eventOf("eve"), eventOf("zoe")];
  await storeFrames(connection, [frameOf([hers(), first]), frameOf([second])]);
  const durable = "had_it_in_work";
  const before = reader(nats, { lanes: ["live"], durable });
  await before.take(2);
  await erased({ natsUrl: nats.url, ids });
  await storeFrames(connection, [frameOf([third])]);
  expect(idsOf(await before.takeAndAck(1))).toEqual([third.uuid]);
  await before.consumer.stop({ timeoutMs: 0 });
  const after = reader(nats, { lanes: ["live"], durable });
  expect(idsOf(await after.takeAndAck(2))).toEqual([second.uuid, first.uuid]);
});

test("a lagging consumer receives all other events after an erasure", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const [first, second] = [eventOf("bob"), eventOf("eve")];
  await storeFrames(connection, [frameOf([hers(), first]), frameOf([second, hers()])]);
  const { take, takeAndAck, notices } = reader(nats, { maxAckPending: 1 });
  const [frame] = await take(1);
  await erased({ natsUrl: nats.url, ids });
  await nats.restart();
  frame!.ack();
  expect(idsOf(await takeAndAck(1))).toEqual([second.uuid]);
  const third = eventOf("zoe");
  await storeFrames(connection, [frameOf([third])]);
  expect(idsOf(await takeAndAck(1))).toEqual([third.uuid]);
  const relevant = types(notices).filter((type) => !["disconnected", "trouble"].includes(type));
  expect(relevant).toEqual(["consumer_created", "consumer_created"]);
});

test("a sink writes each event once during an erasure", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const some = ["bob", "eve", "zoe"].map((id) => eventOf(id));
  const target = () => new PostgresTarget({ url: postgres.url, schema: sinkSchema });
  const uuidsAt = async () =>
    (await eventsAt(postgres.url)).map((line) => line.split(" ")[1]).sort();
  await storeFrames(connection, [frameOf([hers(), some[0]!])]);
  const before = target();
  const first = startSink(connection, before);
  await expect.poll(uuidsAt, { timeout: 20_000 }).toHaveLength(2);
  await first.writer.close();
  await before.close();
  // The stream starts after messages that the sink has not read.
  await storeFrames(connection, [frameOf([some[1]!, hers()]), frameOf([hers()])]);
  await erased({ natsUrl: nats.url, ids });
  await storeFrames(connection, [frameOf([some[2]!])]);
  const second = startSink(connection, target());
  await expect.poll(uuidsAt, { timeout: 20_000 }).toHaveLength(4);
  expect(second.counts.duplicates).toBe(0);
  expect(await uuidsAt()).toEqual(expect.arrayContaining(some.map(({ uuid }) => uuid).sort()));
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info("PENSTOCK_LIVE_0");
  expect(state.first_seq).toBe(4);
  expect((await asked(postgres.url, `SELECT * FROM ${sinkSchema}.incidents`)).length).toBe(0);
});

async function untilAcked(
  connection: NatsConnection,
  [durable, sequence]: readonly [string, number],
): Promise<void> {
  const manager = await jetstreamManager(connection);
  const floor = async () =>
    (await manager.consumers.info("PENSTOCK_LIVE_0", durable)).ack_floor.stream_seq;
  await expect.poll(floor, { timeout: 10_000 }).toBe(sequence);
}
