import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { effectsWords } from "../../../src/readers/effects/writer/applier.ts";
import { EventStreams } from "../../../src/readers/stream/event-streams.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { silent } from "../../kit/processes.ts";
import { makeStreams, storeFrames } from "../../kit/stored-events.ts";
import { addProjects, erased, eventOf, frameOf } from "./erase-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const frames = 400;
const everyNth = 20;

async function read(signal: AbortSignal): Promise<{ sequences: number[]; events: number }> {
  const streams = new EventStreams({
    connection,
    prefix: "penstock",
    positions: new Map(),
    acceptExpired: false,
    bytesMax: 60_000,
    log: silent,
    reader: "sink",
    words: effectsWords,
  });
  const sequences: number[] = [];
  let events = 0;
  while (!signal.aborted && (sequences.at(-1) ?? 0) < frames) {
    for (const item of streams.take(10, 20_000)) {
      if (item.kind !== "frame") continue;
      sequences.push(item.frame.sequence);
      events += item.events;
      await delay(1);
      item.release();
    }
    await delay(2);
  }
  streams.close();
  return { sequences: sequences.slice(0, frames), events };
}

test("a reader with a backlog skips messages that an erasure removed", {
  timeout: 90_000,
}, async ({ signal }) => {
  await makeStreams(connection);
  await addProjects(connection);
  const pad = "x".repeat(1_000);
  const all = Array.from({ length: frames }, (_, at) => {
    const other = eventOf(`bob${at}${pad}`);
    return frameOf(at % everyNth === 7 ? [eventOf("lovelace"), other] : [other]);
  });
  await storeFrames(connection, all);
  expect(await read(signal)).toMatchObject({ events: frames + frames / everyNth });
  await erased({ natsUrl: nats.url, ids: ["lovelace"] });
  const { sequences, events } = await read(signal);
  expect(sequences).toEqual(Array.from({ length: frames }, (_, at) => at + 1));
  expect(events).toBe(frames);
});
