import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import {
  lagMessages,
  streamStatuses,
  totalLag,
} from "../../../../src/readers/effects/streams/lag.ts";
import type { Position } from "../../../../src/readers/effects/types.ts";
import { startNatsServer } from "../../../kit/nats-server.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../../kit/stored-events.ts";

const stream = "PENSTOCK_LIVE_0";

function frame(messageId: string): TestFrame {
  const events = [{ uuid: messageId, distinctId: "ada", receivedAtMs: 1_000 }];
  return { lane: "live", projectId: "p", messageId, events };
}

test("the lag of a recreated stream is all its messages", async () => {
  const nats = await startNatsServer({ syncInterval: "2m" });
  onTestFinished(() => nats.remove());
  const connection = await connect({ servers: nats.url });
  onTestFinished(() => connection.close());
  await makeStreams(connection);
  await storeFrames(connection, [frame("a"), frame("b")]);
  const manager = await jetstreamManager(connection);
  const { created } = await manager.streams.info(stream);
  const storedAtMs = (await manager.streams.getMessage(stream, { seq: 1 }))!.time.getTime();
  const position: Position = {
    stream,
    lane: "live",
    partition: 0,
    epoch: 1,
    watermarkMs: 1_000,
    duplicatesFrom: [0, 0],
    created,
    sequence: 2,
    trail: [{ sequence: 2, messageId: "b", storedAtMs }],
  };
  const status = async (applied: Position) => {
    const which = { prefix: "penstock", applied: [applied], nowMs: storedAtMs + 60_000 };
    const found = (await streamStatuses(connection, which)).find((one) => one.stream === stream)!;
    const { epoch, lagSeconds } = found;
    return { epoch, messages: lagMessages(found), isLate: lagSeconds! > 50 };
  };
  expect(await status(position)).toEqual({ epoch: 1, messages: 0, isLate: false });
  const old = {
    created: "2020-01-01T00:00:00Z",
    sequence: 1_000,
    trail: [{ sequence: 1_000, messageId: "z", storedAtMs: 1_000 }],
  };
  expect(await status({ ...position, ...old })).toEqual({ epoch: 2, messages: 2, isLate: true });
  expect(await status({ ...position, created: old.created })).toMatchObject({ messages: 0 });
});

test("the total lag is the sum of messages and the maximum time", () => {
  const lags = [
    { messages: 3, seconds: 2 },
    { messages: 0, seconds: 0 },
    { messages: 4, seconds: 60 },
  ];
  expect(totalLag(lags)).toEqual({ messages: 7, seconds: 60, isKnown: true });
  const unknown = { messages: undefined, seconds: undefined };
  expect(totalLag([...lags, unknown])).toEqual({ messages: 7, seconds: 60, isKnown: false });
  expect(totalLag([])).toEqual({ messages: 0, seconds: 0, isKnown: true });
});
