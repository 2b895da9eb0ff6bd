// Messages that are read once more, on a real server: which come, and when it is another stream.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { RebuildError } from "../../../src/effects/writer/rebuild-error.ts";
import { RecordedFrames } from "../../../src/effects/writer/recorded-frames.ts";
import { startNatsServer } from "../../../testkit/nats-server.ts";
import { makeStreams, storeFrames } from "../../../testkit/stored-events.ts";

const stream = "PENSTOCK_LIVE_0";
const name = { stream, lane: "live", partition: 0 } as const;

async function opened(messages: number) {
  const nats = await startNatsServer({ syncInterval: "2m" });
  onTestFinished(() => nats.remove());
  const connection = await connect({ servers: nats.url });
  onTestFinished(() => connection.close());
  await makeStreams(connection);
  const store = (count: number): Promise<unknown> =>
    storeFrames(
      connection,
      Array.from({ length: count }, (_, at) => {
        return { lane: "live", projectId: "p", messageId: `m-${at}`, events: [], text: "x" };
      }),
    );
  await store(messages);
  const manager = await jetstreamManager(connection);
  const frames = new RecordedFrames({ connection, manager, bytesMax: 1e6, patienceMs: 60_000 });
  onTestFinished(() => frames.close());
  const read = async (from: number, to: number, isAgain = false): Promise<number[]> => {
    const sequences: number[] = [];
    for await (const item of frames.read({ name, epoch: 3, from, to, isAgain })) {
      expect([item.frame.epoch, item.isAgain]).toEqual([3, isAgain]);
      sequences.push(item.frame.sequence);
      item.release();
    }
    return sequences;
  };
  return { connection, manager, read, store };
}

test("what is asked for comes in order, without what was deleted or never was", async () => {
  const { manager, read } = await opened(10);
  await manager.streams.deleteMessage(stream, 4);
  await manager.streams.deleteMessage(stream, 6);
  expect(await read(2, 4)).toEqual([2, 3]);
  expect(await read(5, 8)).toEqual([5, 7, 8]);
  // Back to what was read already.
  expect(await read(1, 3, true)).toEqual([1, 2, 3]);
  expect(await read(9, 20)).toEqual([9, 10]);
  expect(await read(11, 20)).toEqual([]);
});

test("a stream that was made anew between two runs is not read", async () => {
  const { connection, manager, read, store } = await opened(3);
  expect(await read(1, 9)).toEqual([1, 2, 3]);
  await manager.streams.delete(stream);
  await makeStreams(connection);
  await store(5);
  const fault = await read(1, 5).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(RebuildError);
  expect((fault as Error).message).toContain("made anew");
});
