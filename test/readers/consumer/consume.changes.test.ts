import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { makeStreams } from "../../kit/stored-events.ts";
import {
  frameOf,
  framesOf,
  freshStreams,
  idsOf,
  makeAnew,
  reader,
  removeStreams,
  stored,
  types,
} from "./consumer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const live = "PENSTOCK_LIVE_0";

test("a consumer recreates its deleted durable at the same position", async () => {
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(30));
  const { take, takeAndAck, notices } = reader(nats, { durable: "deleted" });
  await takeAndAck(10);
  const held = await take(5);
  held[3]!.ack();
  const manager = await jetstreamManager(connection);
  await manager.consumers.delete(live, "deleted");
  const later = await stored(connection, framesOf(5));
  const rest = await takeAndAck(20);
  expect(idsOf(rest)).toEqual([...ids.slice(15), ...later]);
  for (const frame of held) frame.ack();
  expect(notices).toContainEqual({ type: "consumer_recreated", stream: live, sequence: 11 });
  const floor = async () => (await manager.consumers.info(live, "deleted")).ack_floor.stream_seq;
  await expect.poll(floor).toBe(35);
});

test("a consumer reads a recreated stream from its first message", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, framesOf(10));
  const { take, takeAndAck, notices } = reader(nats, { lanes: ["live"] });
  await takeAndAck(8);
  const held = await take(2);
  await makeAnew(connection);
  const ids = await stored(connection, framesOf(20));
  const frames = await take(20);
  expect(idsOf(frames)).toEqual(ids);
  const expected = { type: "stream_recreated", stream: live, lastRead: 10, sequence: 1 };
  expect(notices).toContainEqual(expected);
  for (const frame of held) frame.ack();
  for (const frame of frames) frame.ack();
});

test("a consumer redelivers old frames before those of a recreated stream", async () => {
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(6));
  const { take, takeAndAck, notices } = reader(nats, { lanes: ["live"] });
  const held = await take(6);
  await makeAnew(connection);
  const newer = await stored(connection, framesOf(2));
  await expect.poll(() => types(notices)).toContain("stream_recreated");
  const [early] = await take(1);
  held[3]!.ack();
  held[1]!.nak();
  held[2]!.ack();
  const again = await takeAndAck(5);
  expect(idsOf([early!])).toEqual([newer[0]]);
  expect(idsOf(again)).toEqual([ids[1], ids[4], ids[5], ...newer]);
  expect(again.map(({ redelivered }) => redelivered)).toEqual([true, true, true, true, false]);
  early!.nak();
  held[1]!.nak();
  const [last] = await stored(connection, framesOf(1));
  expect(idsOf(await takeAndAck(1))).toEqual([last]);
});

test("a consumer redelivers an unacknowledged frame of a deleted stream", async () => {
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(2));
  const options = { lanes: ["live"], processingTimeoutMs: 3_000 } as const;
  const { take, takeAndAck, notices } = reader(nats, options);
  await take(2);
  await makeAnew(connection);
  await expect.poll(() => types(notices)).toContain("stream_recreated");
  expect(idsOf(await takeAndAck(2))).toEqual(ids);
});

test("a consumer waits for a missing stream", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, framesOf(3));
  const { takeAndAck, notices } = reader(nats, { lanes: ["live"] });
  await takeAndAck(3);
  await removeStreams(connection);
  const missing = () => types(notices).filter((type) => type === "stream_missing").length;
  await expect.poll(missing).toBe(1);
  await makeAnew(connection);
  const ids = await stored(connection, framesOf(3));
  expect(idsOf(await takeAndAck(3))).toEqual(ids);
  const expected = ["consumer_created", "stream_missing", "stream_recreated"];
  expect([...new Set(types(notices))]).toEqual(expected);
});

test("a consumer reads partitions that are added later", async () => {
  const connection = await freshStreams(nats);
  const [first] = await stored(connection, [frameOf("shop")]);
  const { takeAndAck } = reader(nats);
  expect(idsOf(await takeAndAck(1))).toEqual([first]);
  await makeStreams(connection, 4);
  const ids = await stored(
    connection,
    [1, 2, 3].map((partition) => frameOf("shop", { partition })),
  );
  expect(idsOf(await takeAndAck(3)).sort()).toEqual(ids.sort());
});

test("a consumer reads every event once over restarts and lost connections", async () => {
  const connection = await freshStreams(nats);
  const { take, takeAndAck, notices } = reader(nats, { lanes: ["live"] });
  const ids = await stored(connection, framesOf(60));
  const first = await takeAndAck(20);
  const held = await take(5);
  await nats.restart();
  for (const frame of held) frame.ack();
  ids.push(...(await stored(connection, framesOf(20))));
  const second = await takeAndAck(40);
  await nats.kill();
  await expect.poll(() => notices.at(-1)?.type).toBe("disconnected");
  await nats.restart();
  ids.push(...(await stored(connection, framesOf(20))));
  const third = await takeAndAck(35);
  expect(idsOf([...first, ...held, ...second, ...third])).toEqual(ids);
  const others = types(notices).filter((type) => type !== "disconnected");
  expect(others).toEqual(["consumer_created"]);
});

test("a program at its frame limit gets more frames after a reconnect", async () => {
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(20));
  const { take, takeAndAck, notices } = reader(nats, { lanes: ["live"], maxAckPending: 5 });
  const held = await take(5);
  await nats.restart();
  await expect.poll(() => notices.at(-1)?.type).toBe("connected");
  await expect.poll(() => types(notices)).toContain("disconnected");
  for (const frame of held) frame.ack();
  const rest = await takeAndAck(15);
  expect(idsOf([...held, ...rest])).toEqual(ids);
});

test("a consumer continues after a frozen nats-server resumes", async () => {
  const connection = await freshStreams(nats);
  onTestFinished(() => nats.thaw());
  const ids = await stored(connection, framesOf(10));
  const { takeAndAck, notices } = reader(nats, { lanes: ["live"] });
  const first = await takeAndAck(4);
  nats.freeze();
  await expect.poll(() => notices.at(-1)?.type).toBe("disconnected");
  nats.thaw();
  const rest = await takeAndAck(6);
  expect(idsOf([...first, ...rest])).toEqual(ids);
});

test("a consumer looks up the NATS address before each connection", async () => {
  const connection = await freshStreams(nats);
  const [id] = await stored(connection, [frameOf("shop")]);
  let asked = 0;
  const address = async () => {
    if (++asked === 1) throw new Error("no such file");
    return { servers: nats.url };
  };
  const { takeAndAck, notices } = reader(nats, { nats: address });
  expect(idsOf(await takeAndAck(1))).toEqual([id]);
  expect(notices[0]).toEqual({ type: "disconnected", reason: "no such file" });
});

test("a consumer sends a notice about messages that expired unread", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, framesOf(30));
  const { takeAndAck, take, notices } = reader(nats, { lanes: ["live"], maxAckPending: 5 });
  await takeAndAck(5);
  const held = await take(5);
  const manager = await jetstreamManager(connection);
  await manager.streams.purge(live, { seq: 21 });
  for (const frame of held) frame.ack();
  const rest = await takeAndAck(10);
  expect(rest.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: 10 }, (_, at) => 21 + at),
  );
  const expected = { type: "messages_expired", stream: live, from: 11, to: 20 };
  await expect.poll(() => notices).toContainEqual(expected);
});

test("a consumer rejects an existing durable of another kind", async () => {
  const connection = await freshStreams(nats);
  const manager = await jetstreamManager(connection);
  await manager.consumers.add(live, { durable_name: "taken", ack_policy: "none" });
  const { take } = reader(nats, { durable: "taken" });
  await expect(take(1)).rejects.toThrow("not a pull consumer with explicit acknowledgement");
});

test("a consumer stops reading at a message with an unknown schema", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, [frameOf("shop", { schema: "2" })]);
  const { take } = reader(nats);
  await expect(take(1)).rejects.toThrow('the schema "2"');
});

test.each([
  [
    "throws",
    () => {
      throw new Error("not wanted");
    },
  ],
  ["rejects", async () => Promise.reject(new Error("not wanted"))],
])("a consumer stops reading if the notice function %s", async (_, onNotice) => {
  await freshStreams(nats);
  const { take } = reader(nats, { onNotice });
  await expect(take(1)).rejects.toThrow("not wanted");
  await (await connect({ servers: nats.url })).close();
});
