import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { TooSlowError } from "../../../src/platform/base/store-error.ts";
import type {
  SinkBatch,
  SinkPosition,
  SinkTarget,
} from "../../../src/readers/sinks/sink-target.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { silent } from "../../kit/processes.ts";
import { makeStreams, storeFrames, uuidOf } from "../../kit/stored-events.ts";
import { deleteStreams } from "../effects/writer/writer-kit.ts";
import { limits, startSink } from "./sink-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

const eventsInTime = 10;

class SlowTarget implements SinkTarget {
  readonly shown = "a slow target";
  readonly written: number[] = [];
  readonly #error: Error;
  #positions: readonly SinkPosition[] = [];

  constructor(error: Error) {
    this.#error = error;
  }

  async open(): Promise<readonly SinkPosition[]> {
    return this.#positions;
  }

  async write({ events, positions }: SinkBatch) {
    if (events.length > eventsInTime) throw this.#error;
    if (events.length > 0) this.written.push(events.length);
    this.#positions = positions;
    return { written: events.length, duplicates: 0, refused: 0 };
  }

  async close(): Promise<void> {}
}

const events = 40;

async function storeEvents(): Promise<void> {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
  const frames = Array.from({ length: events }, (_, n) => ({
    ...({ lane: "live", projectId: "shop", messageId: `m${n}` } as const),
    events: [
      {
        uuid: uuidOf(n),
        distinctId: "d",
        receivedAtMs: Date.now(),
      },
    ],
  }));
  await storeFrames(connection, frames);
}

test("a sink halves its batches until a batch is written in time", async () => {
  await storeEvents();
  const target = new SlowTarget(new TooSlowError("it took too long"));
  const said: string[] = [];
  const log = {
    ...silent,
    warn: (fields: object) => void said.push((fields as { reason: string }).reason),
  };
  const { counts } = startSink(connection, target, {
    log,
    limits: { ...limits, eventsMax: events, ageMsMax: 1_000 },
  });
  await expect.poll(() => counts.events, { timeout: 20_000 }).toBe(events);
  expect(target.written.every((one) => one <= eventsInTime)).toBe(true);
  expect(said[0]).toBe("it took too long. The next batches have at most 20 events, or one message");
});

test("a sink halves batches that fail repeatedly until a batch is written", async () => {
  await storeEvents();
  const target = new SlowTarget(new Error("not enough memory for the query"));
  const { counts } = startSink(connection, target, {
    limits: { ...limits, eventsMax: events, ageMsMax: 1_000 },
  });
  await expect.poll(() => counts.events, { timeout: 20_000 }).toBe(events);
  expect(target.written.every((one) => one <= eventsInTime)).toBe(true);
});
