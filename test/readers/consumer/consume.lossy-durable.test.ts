import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { framesOf, freshStreams, reader, stored } from "./consumer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });

test.each([
  ["delivers a frame a limited number of times", { max_deliver: 3 }, "at most 3 times"],
  ["delivers only headers", { headers_only: true }, "headers without events"],
])("a consumer rejects an existing durable that %s", async (_, config, message) => {
  const connection = await freshStreams(nats);
  const manager = await jetstreamManager(connection);
  const durable_name = "lossy";
  await manager.consumers.add("PENSTOCK_LIVE_0", {
    durable_name,
    ack_policy: "explicit",
    ...config,
  });
  await stored(connection, framesOf(1));
  const { take } = reader(nats, { durable: durable_name });
  await expect(take(1)).rejects.toThrow(message);
});
