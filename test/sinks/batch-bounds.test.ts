// How much of what is no event comes into one batch, and that others have the event loop meanwhile.

import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import type { FrameItem } from "../../src/reading/frame-item.ts";
import { BatchBuilder } from "../../src/sinks/batch-builder.ts";
import type { SinkBatch, SinkPosition, SinkTarget } from "../../src/sinks/sink-target.ts";
import { natsServerForFile } from "../../testkit/for-file.ts";
import { makeStreams, storeFrames } from "../../testkit/stored-events.ts";
import { limits, startSink } from "./sink-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

const linesEach = 500;

/** Keeps how many lines each batch has put aside. */
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

test("a batch is full with the frame that fills it, also of lines that are put aside", async () => {
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

test("others have the event loop while a frame of many lines is read", async () => {
  const builder = new BatchBuilder({ projects: undefined, lanes: undefined }, []);
  const name = { stream: "S", lane: "live", partition: 0 } as const;
  const place = { epoch: 1, created: "monday", sequence: 0, trail: [] };
  const lines = 50_000;
  const frame = {
    ...{ stream: "S", lane: "live", partition: 0, sequence: 1, messageId: "m", projectId: "shop" },
    ...{ storedAtMs: 0, data: Buffer.from("1\n".repeat(lines)) },
  } as unknown as FrameItem["frame"];
  const item = { kind: "frame", frame, events: lines, isAgain: false, release: () => {} } as const;
  builder.put([{ kind: "place", name, place, incidents: [] }, item]);
  const added = builder.addWaiting({ eventsMax: 1, bytesMax: 1 });
  await new Promise(setImmediate);
  expect(builder.lines).toBeGreaterThan(0);
  expect(builder.lines).toBeLessThan(lines);
  await added;
  expect(builder.lines).toBe(lines);
});
