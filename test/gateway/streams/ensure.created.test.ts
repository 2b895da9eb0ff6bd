import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, describe, expect, test } from "vitest";
import type { StreamSettings } from "../../../src/gateway/streams/desired.ts";
import { Streams } from "../../../src/gateway/streams/ensure.ts";
import { connectNats } from "../../../src/platform/nats/link.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { mebibyte, recordingLog, streamSettings } from "../../kit/publisher-rig.ts";

const log: string[] = [];
const server = await natsServerForFile({ maxFileStore: 256 * mebibyte });
const link = await connectNats({ access: { natsUrl: server.url }, log: recordingLog(log) });
const jsm = await jetstreamManager(link.connection);
afterAll(() => link.close());

const nanosPerSecond = 1_000_000_000;

function ensure(settings: StreamSettings): Promise<void> {
  return new Streams({ link, settings, log: recordingLog(log) }).ensure();
}

function nameOf(settings: StreamSettings, lane: string, partition = 0): string {
  return `${settings.subjectPrefix}_${lane}_${partition}`.toUpperCase();
}

describe("at its start the gateway", () => {
  test("creates a live and a historical stream per partition", async () => {
    const settings = streamSettings({ partitions: 2, streamBytesMax: 2 * mebibyte });
    await ensure(settings);
    await ensure(settings);
    for (const partition of [0, 1]) {
      for (const [lane, seconds] of [
        ["live", 3_600],
        ["historical", 7_200],
      ] as const) {
        const { config } = await jsm.streams.info(nameOf(settings, lane, partition));
        expect(config).toMatchObject({
          subjects: [`${settings.subjectPrefix}.${lane}.${partition}.*`],
          storage: "file",
          retention: "limits",
          discard: "new",
          max_age: seconds * nanosPerSecond,
          max_bytes: 2 * mebibyte,
          max_msgs: -1,
          max_msgs_per_subject: -1,
          duplicate_window: 120 * nanosPerSecond,
          num_replicas: 1,
          allow_direct: true,
        });
      }
    }
    expect(log.filter((line) => line.startsWith("stream created"))).toHaveLength(4);
  });

  test("raises stream limits that are below the configured limits", async () => {
    const settings = streamSettings({ streamBytesMax: 4 * mebibyte });
    await ensure(settings);
    const name = nameOf(settings, "live");
    await jsm.streams.update(name, {
      max_bytes: 8 * mebibyte,
      max_age: 60 * nanosPerSecond,
      duplicate_window: 60 * nanosPerSecond,
      description: "ours",
    });
    log.length = 0;
    await ensure(settings);

    const { config } = await jsm.streams.info(name);
    expect(config).toMatchObject({
      max_bytes: 8 * mebibyte,
      max_age: 3_600 * nanosPerSecond,
      duplicate_window: 120 * nanosPerSecond,
      description: "ours",
      discard: "new",
    });
    expect(log.find((line) => line.includes("kept"))).toContain("max_bytes");
    expect(log.find((line) => line.includes("raised"))).toContain("max_age");
  });

  test("fails if a stream may lose acknowledged events", async () => {
    const settings = streamSettings();
    const name = nameOf(settings, "live");
    await jsm.streams.add({
      name,
      subjects: [`${settings.subjectPrefix}.live.0.*`],
      storage: "memory",
      discard: "old",
      max_msgs: 10,
      max_msg_size: 1_000,
      max_bytes: mebibyte,
    });
    await expect(ensure(settings)).rejects.toThrow(
      `cannot use stream ${name}: it cannot guarantee that acknowledged events stay stored: ` +
        "storage is memory, not file; discard is old, not new; it has a limit of 10 messages; " +
        "its maximum message size is 1000 bytes, and a full frame has 524800",
    );
  });

  test("fails with the setting's name if a stream is too large for the server", async () => {
    const settings = streamSettings({ streamBytesMax: 1_024 * mebibyte });
    await expect(ensure(settings)).rejects.toThrow("lower PENSTOCK_STREAM_BYTES_MAX");
  });

  test("fails with the setting's name if there are more replicas than servers", async () => {
    await expect(ensure(streamSettings({ replicas: 3 }))).rejects.toThrow(
      /^cannot create stream .*: replicas > 1 .*: PENSTOCK_REPLICAS=3 needs a cluster/,
    );
  });
});
