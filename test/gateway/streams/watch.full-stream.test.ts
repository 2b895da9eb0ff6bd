import { jetstreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test, vi } from "vitest";
import { StreamWatch } from "../../../src/gateway/streams/watch.ts";
import { StreamStates } from "../../../src/platform/nats/readiness.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { liveStream, mebibyte, type Rig, recordingLog, startRig } from "../../kit/publisher-rig.ts";

const within = { timeout: 30_000, interval: 20 };
const full = "stream full:";
const serverFull = "NATS storage full";
const roomAgain = "stream has room again";

async function start(more: { maxFileStore?: number } = {}) {
  const server = await startNatsServer(more);
  onTestFinished(() => server.remove());
  const rig = await startRig(server, {
    settings: { streamBytesMax: 2 * mebibyte },
    watchEveryMs: 20,
  });
  onTestFinished(() => rig.close());
  const { streams } = await jetstreamManager(rig.link.connection);
  return { rig, streams, name: liveStream(rig) };
}

async function fillUntil(rig: Rig, message: string): Promise<void> {
  await vi.waitFor(async () => {
    const { code } = await rig.send("live", "x".repeat(400_000));
    expect(code).toBe("store_full");
    expect(logged(rig.log, message)).toHaveLength(1);
  }, within);
  for (let count = 0; count < 3; count++) await rig.streams.check();
}

function logged(log: readonly string[], beginning: string): string[] {
  return log.filter((line) => line.startsWith(beginning));
}

test("a stream is logged when it becomes full and when it recovers", async () => {
  const { rig, streams, name } = await start();
  expect((await rig.send("live", "before")).outcome).toBe("stored");
  await rig.streams.check();
  expect(logged(rig.log, full)).toEqual([]);
  await fillUntil(rig, full);
  const [line = "", ...more] = logged(rig.log, full);
  expect(more).toEqual([]);
  expect(line).toContain(`"stream":"${name}"`);
  expect(line).toContain(`"bytes_max":${2 * mebibyte}`);
  expect(line).toContain("PENSTOCK_STREAM_BYTES_MAX");
  expect(logged(rig.log, roomAgain)).toEqual([]);

  await streams.purge(name);
  await vi.waitFor(() => expect(logged(rig.log, roomAgain)).toHaveLength(1), within);
  for (let count = 0; count < 3; count++) await rig.streams.check();
  expect(logged(rig.log, roomAgain)).toHaveLength(1);
  // The log line is repeated only after an event was stored.
  await vi.waitFor(
    async () => expect((await rig.send("live", "room")).outcome).toBe("stored"),
    within,
  );
  await vi.waitFor(async () => {
    await rig.send("live", "x".repeat(400_000));
    expect(logged(rig.log, full)).toHaveLength(2);
  }, within);
  expect(logged(rig.log, serverFull)).toEqual([]);
});

test("a stream that is full at the start is logged immediately", async () => {
  const { rig } = await start();
  await fillUntil(rig, full);
  const log: string[] = [];
  const watch = new StreamWatch({
    link: rig.link,
    settings: rig.settings,
    streams: new StreamStates(rig.settings.subjectPrefix, rig.settings.partitions),
    metrics: { streamRegressed: () => {} },
    log: recordingLog(log),
    monotonicMs: () => performance.now(),
    everyMs: 3_600_000,
  });
  onTestFinished(() => watch.close());
  await watch.askedOnce;
  expect(logged(log, full)).toHaveLength(1);
});

test("a server without disk space is logged", async () => {
  const { rig, streams, name } = await start({ maxFileStore: 6 * mebibyte });
  await streams.update(name, { max_bytes: -1 });
  await fillUntil(rig, serverFull);
  expect(logged(rig.log, full)).toEqual([]);
  expect(logged(rig.log, roomAgain)).toEqual([]);
  await streams.purge(name);
  await vi.waitFor(async () => {
    await rig.send("live", "room");
    expect(logged(rig.log, roomAgain)).toHaveLength(1);
  }, within);
  expect(logged(rig.log, serverFull)).toHaveLength(1);
});
