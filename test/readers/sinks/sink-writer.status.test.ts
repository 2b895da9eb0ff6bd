import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { StoreError } from "../../../src/platform/base/store-error.ts";
import type { SinkPosition, SinkTarget } from "../../../src/readers/sinks/sink-target.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { silent } from "../../kit/processes.ts";
import { makeStreams, storeFrames } from "../../kit/stored-events.ts";
import { deleteStreams } from "../effects/writer/writer-kit.ts";
import { startSink } from "./sink-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

class PickyTarget implements SinkTarget {
  readonly shown = "a picky target";
  refuses = "it is full";
  rejects = false;
  opens = 0;
  #positions: readonly SinkPosition[] = [];

  async open(): Promise<readonly SinkPosition[]> {
    this.opens++;
    return this.#positions;
  }

  async write({ events, positions }: Parameters<SinkTarget["write"]>[0]) {
    if (this.refuses !== "") throw new StoreError(this.refuses);
    this.#positions = positions;
    if (this.rejects) return { written: 0, duplicates: 0, refused: events.length };
    return { written: events.length, duplicates: 0, refused: 0 };
  }

  async close(): Promise<void> {}
}

async function store(messageId: string, count = 1): Promise<void> {
  const events = Array.from({ length: count }, (_, at) => ({
    uuid: `00000000-0000-4000-8000-${messageId}${String(at).padStart(11, "0")}`,
    distinctId: "d",
    receivedAtMs: Date.now(),
  }));
  await storeFrames(connection, [{ lane: "live", projectId: "shop", messageId, events }]);
}

test("a sink reports that its target refuses a batch", async () => {
  await makeStreams(connection);
  const target = new PickyTarget();
  target.refuses = "";
  const logged: string[] = [];
  const log = {
    ...silent,
    info: (_: object, message: string) => void logged.push(message),
    warn: (fields: object, message: string) =>
      void logged.push(`${message}: ${(fields as { reason: string }).reason}`),
  };
  const { writer, counts } = startSink(connection, target, { log });
  await store("1");
  await expect.poll(() => counts.events).toBe(1);
  target.refuses = "it is full";
  await store("2");
  await expect.poll(() => writer.status(Date.now()).reasons).toContain("it is full");
  const opened = target.opens;
  const said = new Set<string>();
  // Each `open` succeeds, so the sink could report success until the next write fails.
  await expect
    .poll(
      () => {
        const { state, reasons, streams } = writer.status(Date.now());
        const live = streams.find(({ lane }) => lane === "live");
        said.add(`${state} ${reasons[0]} ${live?.sequence}`);
        return target.opens;
      },
      { interval: 1, timeout: 20_000 },
    )
    .toBeGreaterThan(opened + 3);
  expect([...said]).toEqual(["hindered it is full 1"]);
  target.refuses = "";
  await expect.poll(() => counts.events, { timeout: 10_000 }).toBe(2);
  expect(writer.status(Date.now())).toMatchObject({ state: "writing", hasTarget: true });
  const ofWriting = logged.filter((message) => message.startsWith("sink writ"));
  expect(ofWriting).toEqual([
    "sink writing events",
    "sink write failed: retrying until it succeeds: it is full",
    "sink writing events",
  ]);
});

test("a sink reports that its target rejected over 100 events in a row", async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
  const target = new PickyTarget();
  target.refuses = "";
  target.rejects = true;
  const warned: unknown[] = [];
  const log = { ...silent, warn: (_: object, message: string) => void warned.push(message) };
  const { writer, counts } = startSink(connection, target, { log });
  await store("1", 100);
  await expect.poll(() => counts.rejected).toBe(100);
  expect(writer.status(Date.now()).reasons).toEqual([]);
  await store("2");
  const reason = /has rejected the last 101 events/;
  await expect
    .poll(() => writer.status(Date.now()).reasons)
    .toEqual([expect.stringMatching(reason)]);
  expect(warned).toEqual(["sink target accepts no events: check its table"]);
  target.rejects = false;
  await store("3");
  await expect.poll(() => counts.events).toBe(1);
  expect(writer.status(Date.now())).toMatchObject({ state: "writing", reasons: [] });
});
