import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import { BytesInHand } from "../../../src/readers/stream/bytes-in-hand.ts";
import { Pull, type PulledMessage } from "../../../src/readers/stream/pull.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../kit/stored-events.ts";

const stream = "PENSTOCK_LIVE_0";
const text = "x".repeat(1_000);

function frameOf(n: number): TestFrame {
  return { lane: "live", projectId: "p", messageId: `m-${n}`, events: [], text };
}

async function opened({ frames, from = 1, max }: { frames: number; from?: number; max: number }) {
  const nats = await startNatsServer({ syncInterval: "2m" });
  onTestFinished(() => nats.remove());
  const connection = await connect({ servers: nats.url });
  onTestFinished(() => connection.close());
  await makeStreams(connection);
  await storeFrames(
    connection,
    Array.from({ length: frames }, (_, index) => frameOf(index + 1)),
  );
  const manager = await jetstreamManager(connection);
  const bytes = new BytesInHand(max);
  const pull = await Pull.open({ connection, manager, reader: "effects", stream, from, bytes });
  onTestFinished(() => pull.close());
  return { pull, bytes, manager, connection };
}

function release(messages: readonly PulledMessage[]): void {
  for (const { share, message } of messages) share.release(message.data.length);
}

test("a pull delivers all messages from its start in order", async () => {
  const { pull, bytes } = await opened({ frames: 30, from: 4, max: 1e6 });
  const sequences: number[] = [];
  while (sequences.length < 27) {
    const messages = await pull.next();
    sequences.push(...messages.map(({ sequence }) => sequence));
    release(messages);
  }
  expect(sequences).toEqual(Array.from({ length: 27 }, (_, index) => index + 4));
  expect(pull.lastSequence).toBe(30);
  expect(bytes.used).toBe(0);
});

test("a pull delivers no more than its memory budget allows", async () => {
  const { pull, bytes } = await opened({ frames: 20, max: 6_000 });
  const taken: PulledMessage[] = [];
  let isReading = true;
  const reading = (async () => {
    while (isReading && taken.length < 20) taken.push(...(await pull.next()));
  })();
  await vi.waitFor(() => expect(bytes.used).toBeGreaterThan(0), { timeout: 20_000 });
  let released = 0;
  while (released < 20) {
    await vi.waitFor(() => expect(taken.length).toBeGreaterThan(released), { timeout: 20_000 });
    // A frame of at most half of the budget, which is the limit of one stream.
    expect(bytes.used).toBeLessThanOrEqual(3_000 + text.length);
    release(taken.slice(released, released + 1));
    released++;
  }
  isReading = false;
  await reading;
  expect(taken.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: 20 }, (_, at) => at + 1),
  );
  expect(bytes.used).toBe(0);
});

test("a closed pull releases its memory and deletes its consumer", async () => {
  const { pull, bytes, manager, connection } = await opened({ frames: 1, max: 1e6 });
  release(await pull.next());
  await storeFrames(connection, [frameOf(2), frameOf(3)]);
  await vi.waitFor(() => expect(bytes.used).toBe(2 * text.length), { timeout: 20_000 });
  pull.close();
  expect(bytes.used).toBe(0);
  await expect(pull.next()).rejects.toThrow("reading was ended");
  await vi.waitFor(
    async () => expect((await manager.streams.info(stream)).state.consumer_count).toBe(0),
    { timeout: 20_000 },
  );
});

test("a pull ends with an error if its consumer is removed", async () => {
  const { pull, manager } = await opened({ frames: 1, max: 1e6 });
  release(await pull.next());
  const ended = expect(pull.next()).rejects.toThrow("the consumer no longer exists");
  const [consumer] = await manager.consumers.list(stream).next();
  expect(consumer!.name).toMatch(/^penstock_effects_/);
  await manager.consumers.delete(stream, consumer!.name);
  await ended;
});
