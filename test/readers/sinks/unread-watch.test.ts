import { DiscardPolicy, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { nanosPerMs } from "../../../src/platform/nats/api.ts";
import type { SinkPosition } from "../../../src/readers/sinks/sink-target.ts";
import { UnreadWatch } from "../../../src/readers/sinks/unread-watch.ts";
import { natsServerForFile } from "../../kit/for-file.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const manager = await jetstreamManager(connection);
const hourMs = 3_600_000;

async function watched(stream: string, messages: number, config: Partial<StreamConfig>) {
  await manager.streams.add({ name: stream, subjects: [`${stream}.>`], ...config });
  const publish = async (count: number): Promise<void> => {
    for (let nth = 0; nth < count; nth++)
      await connection.request(`${stream}.a`, new Uint8Array(1_000));
  };
  await publish(messages);
  const position: SinkPosition = {
    stream,
    lane: "live",
    partition: 0,
    epoch: 1,
    created: "",
    sequence: 2,
    trail: [],
  };
  const watch = new UnreadWatch(connection, () => [position]);
  return { watch, publish };
}

test("the time until unread events expire depends on the oldest unread event", async () => {
  const { watch } = await watched("A", 5, { max_age: hourMs * nanosPerMs });
  const nowMs = Date.now();
  await watch.ask(manager, nowMs);
  const [one] = watch.streams(nowMs + 10_000);
  expect(one).toMatchObject({ sequence: 2, lastSequence: 5, retentionSeconds: 3_600 });
  expect(one?.lagSeconds).toBeGreaterThanOrEqual(10);
  expect((one?.lagSeconds ?? 0) + (one?.expirySeconds ?? 0)).toBeCloseTo(3_600, 3);
  expect(watch.streams(nowMs + 60_000)).toMatchObject([{ expirySeconds: undefined }]);
});

test("the time until unread events expire is infinite without unread events", async () => {
  const { watch } = await watched("B", 2, { max_age: hourMs * nanosPerMs });
  await watch.ask(manager, Date.now());
  expect(watch.streams(Date.now())).toMatchObject([
    { lagSeconds: 0, expirySeconds: Number.POSITIVE_INFINITY },
  ]);
});

test.each([
  [DiscardPolicy.Old, true],
  [DiscardPolicy.New, false],
])(
  "the time until unread events expire by size, with discard %s, is %s",
  async (discard, leaves) => {
    const name = `C${discard}`;
    const { watch, publish } = await watched(name, 12, { discard, max_bytes: 100_000 });
    const nowMs = Date.now();
    await watch.ask(manager, nowMs);
    await publish(10);
    await watch.ask(manager, nowMs + 10_000);
    const [one] = watch.streams(nowMs + 10_000);
    const seconds = one?.expirySeconds ?? 0;
    // The rate is one message per second, and about 75 messages fit before the oldest unread
    // message is discarded.
    if (leaves) expect(seconds).toBeGreaterThan(60);
    if (leaves) expect(seconds).toBeLessThan(90);
    else expect(seconds).toBe(Number.POSITIVE_INFINITY);
  },
);
