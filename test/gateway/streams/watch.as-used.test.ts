import { jetstreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test, vi } from "vitest";
import { partitionOf } from "../../../src/platform/nats/names.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { startRig, stored } from "../../kit/publisher-rig.ts";

const partitions = 48;
const within = { timeout: 30_000, interval: 20 };

async function start() {
  const server = await startNatsServer({ maxFileStore: 8 * 1_073_741_824 });
  onTestFinished(() => server.remove());
  const rig = await startRig(server, {
    settings: { partitions, streamBytesMax: 1_048_576 },
    watchEveryMs: 200,
  });
  onTestFinished(() => rig.close());
  const partition = partitionOf("alpha", partitions);
  const name = `${rig.settings.subjectPrefix}_LIVE_${partition}`.toUpperCase();
  return { rig, name, streams: (await jetstreamManager(rig.link.connection)).streams };
}

test("a stream in use is checked equally often among many streams", async () => {
  const { rig, name, streams } = await start();
  const asked: string[] = [];
  rig.link.connection.subscribe("$JS.API.STREAM.INFO.>", {
    callback: (_, { subject }) => void asked.push(subject.split(".").at(-1)!),
  });
  await vi.waitFor(async () => {
    expect(await rig.send("live", "one")).toEqual(stored);
    expect(asked.filter((stream) => stream === name).length).toBeGreaterThan(3);
  }, within);
  // All other streams are read in turn, ten at a time.
  const others = new Set(asked).size;
  expect(asked.length).toBeLessThan(others * 3);
  await streams.update(name, { max_msgs_per_subject: 1 });
  const editedAtMs = performance.now();
  await vi.waitFor(async () => {
    await rig.send("live", "two");
    expect(rig.publisher.refusalOf("live", "alpha")).toBeDefined();
  }, within);
  // Reading all 96 streams in turn would take two seconds here.
  expect(performance.now() - editedAtMs).toBeLessThan(1_500);
  await streams.update(name, { max_msgs_per_subject: -1 });
  await vi.waitFor(() => expect(rig.publisher.refusalOf("live", "alpha")).toBeUndefined(), within);
});
