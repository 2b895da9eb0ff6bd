import { cpSync, rmSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { framesOf, freshStreams, idsOf, reader, stored } from "./consumer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const stream = "PENSTOCK_LIVE_0";

test("a consumer reports that its stream was restored from an older copy", async () => {
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(10));
  const { takeAndAck, take, notices } = reader(nats, { lanes: ["live"] });
  await takeAndAck(8);
  const copy = path.join(temporaryFolder(), "store");
  await nats.stop();
  cpSync(nats.storeDir, copy, { recursive: true });
  await nats.restart();
  await stored(connection, framesOf(10));
  await takeAndAck(2);
  await take(10);
  await nats.kill();
  rmSync(nats.storeDir, { recursive: true });
  cpSync(copy, nats.storeDir, { recursive: true });
  await nats.restart();
  const later = await stored(connection, framesOf(15));
  const read = await takeAndAck(15);
  expect(idsOf(read)).toEqual(later);
  expect(ids).toHaveLength(10);
  expect(notices).toContainEqual({ type: "stream_truncated", stream, lastRead: 20, from: 11 });
});

test("a stopped consumer reads new messages after a restore of its stream", async () => {
  const connection = await freshStreams(nats);
  await stored(connection, framesOf(10));
  const first = reader(nats, { lanes: ["live"], durable: "away" });
  await first.takeAndAck(4);
  await first.consumer.stop();
  const copy = path.join(temporaryFolder(), "store");
  await nats.stop();
  cpSync(nats.storeDir, copy, { recursive: true });
  await nats.restart();
  const second = reader(nats, { lanes: ["live"], durable: "away" });
  await second.takeAndAck(6);
  await second.consumer.stop();
  await nats.kill();
  rmSync(nats.storeDir, { recursive: true });
  cpSync(copy, nats.storeDir, { recursive: true });
  await nats.restart();
  const third = reader(nats, { lanes: ["live"], durable: "away" });
  const again = await third.takeAndAck(6);
  expect(again.map(({ sequence }) => sequence)).toEqual([5, 6, 7, 8, 9, 10]);
});

test("a consumer needs only the NATS permissions that the guide lists", async () => {
  const allowed = [
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.CONSUMER.>",
    "$JS.ACK.>",
  ];
  const rights = `publish: ${JSON.stringify(allowed)}, subscribe: ["_INBOX.>"]`;
  const users = `users: [
    { user: all, password: all },
    { user: reader, password: reader, permissions: { ${rights} } }
  ]`;
  const connection = await freshStreams(nats);
  const ids = await stored(connection, framesOf(5));
  await nats.restart({ extraConfig: `authorization { ${users} }` });
  const access = { servers: nats.url, user: "reader", pass: "reader" };
  const { takeAndAck, notices } = reader(nats, { nats: access, lanes: ["live"] });
  expect(idsOf(await takeAndAck(5))).toEqual(ids);
  expect(notices.filter(({ type }) => type === "trouble")).toEqual([]);
});
