import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { StoreSession } from "../../src/live/store-session.ts";
import { natsServerForFile } from "../kit/for-file.ts";

const server = await natsServerForFile();
/** More than the 256 streams that nats-server describes in one answer. */
const partitions = 300;

test("the live page counts streams that it does not list", async () => {
  const open = () => connect({ servers: server.url });
  const session = new StoreSession({ connect: open, subjectPrefix: "many" });
  onTestFinished(() => session.close());
  const connection = (await session.connection)!;
  const { streams: manager } = await jetstreamManager(connection);
  const add = (partition: number) =>
    manager.add({
      name: `MANY_LIVE_${partition}`,
      subjects: [`many.live.${partition}.*`],
      storage: "memory",
    });
  await add(0);
  expect(await session.snapshot()).toMatchObject({ streams: { length: 1 }, streamsTotal: 1 });
  for (let partition = 1; partition < partitions; partition++) await add(partition);
  await manager.add({ name: "OTHER", subjects: ["other"], storage: "memory" });
  const { streams, streamsTotal } = await session.snapshot();
  expect([streams.length, streamsTotal]).toEqual([32, partitions]);
});
