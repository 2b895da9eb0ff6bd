import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { BatchBuilder } from "../../../src/readers/sinks/batch-builder.ts";
import type {
  SinkBatch,
  SinkPosition,
  SinkTarget,
} from "../../../src/readers/sinks/sink-target.ts";
import type { FrameItem } from "../../../src/readers/stream/stream-reader.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { makeStreams, storedLine, storeFrames } from "../../kit/stored-events.ts";
import { limits, startSink } from "./sink-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

const linesEach = 500;

class CountingTarget implements SinkTarget {
  readonly shown = "a counting target";
  readonly rejected: number[] = [];

  async open(): Promise<readonly SinkPosition[]> {
    return [];
  }

  async write({ rejected }: SinkBatch) {
    if (rejected.length > 0) this.rejected.push(rejected.length);
    return { written: 0, duplicates: 0, refused: 0 };
  }

  async close(): Promise<void> {}
}

test("a batch ends with the frame that reaches the limit", async () => {
  await makeStreams(connection);
  const frames = Array.from({ length: 6 }, (_, n) => ({
    ...({ lane: "live", projectId: "shop", messageId: `m${n}`, events: [] } as const),
    text: "1\n".repeat(linesEach),
  }));
  await storeFrames(connection, frames);
  const target = new CountingTarget();
  startSink(connection, target, { limits: { ...limits, eventsMax: linesEach, ageMsMax: 5_000 } });
  await expect
    .poll(() => target.rejected, { timeout: 30_000 })
    .toEqual(frames.map(() => linesEach));
});

function builderWith(text: string): BatchBuilder {
  const builder = new BatchBuilder({ projects: undefined, lanes: undefined }, []);
  const name = { stream: "S", lane: "live", partition: 0 } as const;
  const position = { epoch: 1, created: "monday", sequence: 0, trail: [] };
  const frame = {
    stream: "S",
    lane: "live",
    partition: 0,
    sequence: 1,
    messageId: "m",
    projectId: "shop",
    storedAtMs: 0,
    data: Buffer.from(text),
  } as unknown as FrameItem["frame"];
  const item = { kind: "frame", frame, events: 1, isReread: false, release: () => {} } as const;
  builder.put([{ kind: "position", name, position, incidents: [] }, item]);
  return builder;
}

const least = { eventsMax: 1, bytesMax: 1 };

test("reading a frame of many lines yields to the event loop", async () => {
  const singleMax = 10_000;
  const builder = builderWith("1\n".repeat(singleMax));
  const added = builder.addWaiting(least);
  await new Promise(setImmediate);
  expect(builder.lines).toBeGreaterThan(0);
  expect(builder.lines).toBeLessThan(singleMax);
  await added;
  expect(builder.lines).toBe(singleMax);
});

test("rejected lines of a frame beyond 10,000 become one rejection", async () => {
  const event = { uuid: "00000000-0000-4000-8000-000000000001", distinctId: "d", receivedAtMs: 0 };
  const record = storedLine(event, "shop", "live");
  const head = "1\n".repeat(10_000);
  const builder = builderWith(`${head}[]\n${record}\nno json\n2\n${record}`);
  await builder.addWaiting(least);
  const { events, rejected } = builder.take();
  expect(events.map(({ line }) => line)).toEqual([10_001, 10_004]);
  expect(rejected.length).toBe(10_001);
  expect(rejected.at(-2)).toMatchObject({ line: 9_999, detail: "the line is not an object" });
  const last = rejected.at(-1)!;
  expect(last).toMatchObject({
    line: 10_000,
    projectId: "shop",
    reason: "not_a_record",
    detail: "3 lines; the first: the line is not an object",
  });
  expect(String(last.text)).toBe(`[]\n${record}\nno json\n2`);
});

test("a single rejected line beyond 10,000 is listed separately", async () => {
  const builder = builderWith("1\n".repeat(10_001));
  await builder.addWaiting(least);
  const { rejected } = builder.take();
  expect(rejected.at(-1)).toMatchObject({ line: 10_000, detail: "the line is not an object" });
});
