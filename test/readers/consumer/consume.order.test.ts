import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, onTestFinished, test } from "vitest";
import { consume } from "../../../src/readers/consumer/consume.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { findNatsServer, oldestNatsServer } from "../../kit/nats-server.ts";
import { storedLine } from "../../kit/stored-events.ts";
import { frameOf, framesOf, freshStreams, idsOf, reader, stored, types } from "./consumer-kit.ts";

const binaries = [findNatsServer(), oldestNatsServer()];

describe.each(["the newest nats-server", "the oldest"])("a consumer on %s", async (which) => {
  const binary = binaries[which === "the oldest" ? 1 : 0]!;
  const nats = await natsServerForFile({ syncInterval: "2m", binary });

  test("delivers every event of both streams once and in order", async () => {
    const connection = await freshStreams(nats);
    const live = await stored(connection, framesOf(300));
    const past = await stored(connection, framesOf(30, { lane: "historical" }));
    const { takeAndAck, notices } = reader(nats);
    const frames = await takeAndAck(330);
    expect(idsOf(frames.filter(({ lane }) => lane === "live"))).toEqual(live);
    expect(idsOf(frames.filter(({ lane }) => lane === "historical"))).toEqual(past);
    expect(types(notices)).toEqual(["consumer_created", "consumer_created"]);
    const first = frames.find(({ lane }) => lane === "live");
    expect(first).toMatchObject({ stream: "PENSTOCK_LIVE_0", partition: 0, redelivered: false });
    expect(JSON.parse(frames[0]!.lines[0]!)).toEqual(frames[0]!.events[0]);
  });

  test("continues in order after the frames that another consumer acknowledged", async () => {
    const connection = await freshStreams(nats);
    const ids = await stored(connection, framesOf(100));
    const first = reader(nats, { durable: "passed_on" });
    await first.takeAndAck(40);
    const unacknowledged = await first.take(10);
    unacknowledged[4]!.ack();
    await first.consumer.stop({ timeoutMs: 0 });
    const later = await stored(connection, framesOf(5));
    const second = reader(nats, { durable: "passed_on" });
    const frames = await second.takeAndAck(64);
    expect(idsOf(frames)).toEqual([...ids.slice(40, 44), ...ids.slice(45), ...later]);
    expect(frames[0]!.redelivered).toBe(true);
    expect(types(second.notices)).toEqual([]);
  });

  test("sends its acknowledgements to the server", async () => {
    const connection = await freshStreams(nats);
    await stored(connection, framesOf(20));
    const { takeAndAck, consumer } = reader(nats, { durable: "floor" });
    await takeAndAck(20);
    await consumer.stop();
    const manager = await jetstreamManager(connection);
    const info = await manager.consumers.info("PENSTOCK_LIVE_0", "floor");
    expect([info.ack_floor.stream_seq, info.num_ack_pending]).toEqual([20, 0]);
  });

  test("redelivers a returned frame and all later frames in order", async () => {
    const connection = await freshStreams(nats);
    const ids = await stored(connection, framesOf(12));
    const { take, takeAndAck } = reader(nats);
    const frames = await take(8);
    frames[5]!.ack();
    frames[3]!.nak();
    const again = await takeAndAck(8);
    expect(idsOf(again)).toEqual([ids[3], ids[4], ids[6], ids[7], ...ids.slice(8)]);
    expect(again.map(({ redelivered }) => redelivered)).toEqual(
      [true, true, true, true].concat([false, false, false, false]),
    );
  });

  test("delivers no more unacknowledged frames than requested", async () => {
    const connection = await freshStreams(nats);
    await stored(connection, framesOf(50));
    const { take, takeAndAck } = reader(nats, { durable: "bounded", maxAckPending: 5 });
    const frames = await take(5);
    const manager = await jetstreamManager(connection);
    const info = await manager.consumers.info("PENSTOCK_LIVE_0", "bounded");
    expect([info.num_ack_pending, info.config.max_ack_pending]).toEqual([5, 5]);
    for (const frame of frames) frame.ack();
    await takeAndAck(45);
  });

  test("delivers up to the maximum of frames that a program may hold", async () => {
    const connection = await freshStreams(nats);
    const ids = await stored(connection, framesOf(7));
    // At first, the consumer requests as many frames as fit at the assumed size. Small frames leave
    // space for one more.
    const bounds = { lanes: ["live"], maxAckPending: 8, maxBytes: 7 * 65_536 } as const;
    const { take } = reader(nats, { durable: "gathering", ...bounds });
    const manager = await jetstreamManager(connection);
    const info = () => manager.consumers.info("PENSTOCK_LIVE_0", "gathering").catch(() => {});
    await expect.poll(async () => (await info())?.num_ack_pending).toBe(7);
    const frames = await take(7);
    const [last] = await stored(connection, framesOf(1));
    expect(idsOf([...frames, ...(await take(1))])).toEqual([...ids, last]);
  });

  test("omits the events of other projects from shared frames", async () => {
    const connection = await freshStreams(nats);
    const line = (uuid: string, projectId: string) => ({ ...frameOf(projectId).events[0]!, uuid });
    const shared = [line("a", "shop"), line("b", "other"), line("c", "shop")];
    const text = shared
      .map((event, at) => `${storedLine(event, at === 1 ? "other" : "shop", "live")}\n`)
      .join("");
    await stored(connection, [
      frameOf("~", { text }),
      frameOf("other"),
      frameOf("~", { text: `${storedLine(line("d", "other"), "other", "live")}\n` }),
    ]);
    const [own] = await stored(connection, [frameOf("shop")]);
    const { takeAndAck, consumer } = reader(nats, {
      durable: "one_project",
      projects: ["shop", "shop"],
    });
    expect(idsOf(await takeAndAck(2))).toEqual(["a", "c", own]);
    await consumer.stop();
    const manager = await jetstreamManager(connection);
    const info = await manager.consumers.info("PENSTOCK_LIVE_0", "one_project");
    expect([info.num_ack_pending, info.num_pending]).toEqual([0, 0]);
    const { take } = reader(nats, { durable: "one_project", projects: ["other"] });
    await expect(take(1)).rejects.toThrow(/reads the projects shop.*other/);
  });

  test("closes its connection when the loop ends", async () => {
    const connection = await freshStreams(nats);
    await stored(connection, framesOf(3));
    const consumer = consume({ nats: { servers: nats.url }, durable: "left", onNotice: () => {} });
    onTestFinished(() => consumer.stop());
    for await (const frame of consumer) {
      frame.ack();
      break;
    }
    expect(await consumer.next()).toEqual({ done: true, value: undefined });
    const manager = await jetstreamManager(connection);
    const waiting = async () =>
      (await manager.consumers.info("PENSTOCK_LIVE_0", "left")).num_waiting;
    await expect.poll(waiting).toBe(0);
  });
});
