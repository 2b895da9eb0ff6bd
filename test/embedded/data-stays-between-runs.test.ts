// What was acknowledged is there at the next start, although port and token are others.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { embeddedOn, temporaryFolder } from "./embedded-kit.ts";

test("a message of the first run is read in the second", async () => {
  const dataDir = temporaryFolder();
  const first = await embeddedOn(dataDir);
  const writer = await connect({ servers: first.url, token: first.token });
  await (await jetstreamManager(writer)).streams.add({ name: "S", subjects: ["s"] });
  await jetstream(writer).publish("s", "kept");
  await writer.close();
  await first.close();

  const second = await embeddedOn(dataDir);
  expect(second.token).not.toBe(first.token);
  const reader = await connect({ servers: second.url, token: second.token });
  const message = await (await jetstreamManager(reader)).streams.getMessage("S", { seq: 1 });
  expect(message?.string()).toBe("kept");
  await reader.close();
});

test("nobody without the token gets in", async () => {
  const embedded = await embeddedOn(temporaryFolder());
  await expect(connect({ servers: embedded.url, maxReconnectAttempts: 0 })).rejects.toThrow(/authorization/i);
});
