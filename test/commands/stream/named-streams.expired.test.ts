import type { JetStreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { messageBytesOf } from "../../../src/commands/stream/named-streams.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();
const stream = "PENSTOCK_LIVE_0";

test("the count of a subject's messages ends if they expire meanwhile", async () => {
  const { manager, publish } = await streamRig(server);
  for (let count = 0; count < 3; count++) await publish("shop");
  const connection = await connect({ servers: server.url });
  onTestFinished(() => connection.close());
  const streams = {
    async info(...args: Parameters<typeof manager.streams.info>) {
      const info = await manager.streams.info(...args);
      await manager.streams.purge(stream);
      return info;
    },
  };
  const expiring = { streams } as unknown as JetStreamManager;
  const subject = "penstock.live.0.shop";
  const { signal: stop } = new AbortController();
  const counted = await messageBytesOf(expiring, connection, { stream, subject, stop });
  expect(counted).toEqual({ messages: 0, bytes: 0 });
}, 20_000);
