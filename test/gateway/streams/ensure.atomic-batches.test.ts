import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, test } from "vitest";
import { atomicSetting, type StreamSettings } from "../../../src/gateway/streams/desired.ts";
import { Streams } from "../../../src/gateway/streams/ensure.ts";
import { connectNats } from "../../../src/platform/nats/link.ts";
import { storesAtomicBatchesWell } from "../../../src/platform/nats/versions.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { recordingLog, startRig, streamSettings } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile({ maxFileStore: 8_589_934_592 });
const connection = await connect({ servers: server.url });
const jsm = await jetstreamManager(connection);
afterAll(() => connection.close());

async function ensure(settings: StreamSettings, url = server.url): Promise<string[]> {
  const log: string[] = [];
  const link = await connectNats({ access: { natsUrl: url }, log: recordingLog(log) });
  await new Streams({ link, settings, log: recordingLog(log) }).ensure();
  await link.close();
  return log;
}

async function takes({ subjectPrefix }: StreamSettings, lane = "LIVE"): Promise<boolean> {
  const { config } = await jsm.streams.info(`${subjectPrefix.toUpperCase()}_${lane}_0`);
  return config.allow_atomic === true;
}

describe("atomic batches", () => {
  test("are enabled on a stream at its creation", async () => {
    const settings = streamSettings();
    await ensure(settings);
    expect([await takes(settings), await takes(settings, "HISTORICAL")]).toEqual([true, true]);
  });

  test("are not enabled on a stream if the settings forbid them", async () => {
    const without = streamSettings({ atomicBatches: false });
    await ensure(without);
    expect(await takes(without)).toBe(false);
    await ensure({ ...without, atomicBatches: true });
    expect(await takes(without)).toBe(true);
    await ensure(without);
    expect(await takes(without)).toBe(true);
  });

  test("are enabled on a stream at a start, not at a reconnect", async () => {
    const without = streamSettings({ atomicBatches: false });
    await ensure(without);
    const name = `${without.subjectPrefix.toUpperCase()}_LIVE_0`;
    await jsm.streams.update(name, { description: "ours", max_age: 9_000_000_000_000 });
    const rig = await startRig(server, { settings: { ...without, atomicBatches: true } });
    expect(await takes(without)).toBe(true);
    expect((await jsm.streams.info(name)).config).toMatchObject({
      description: "ours",
      max_age: 9_000_000_000_000,
    });
    await jsm.streams.update(name, { allow_atomic: false });
    const reconnected = new Promise<void>((resolve) =>
      rig.link.onChange((connected) => connected && resolve()),
    );
    void rig.link.connection.reconnect().catch(() => {});
    await reconnected;
    await rig.streams.ensure();
    expect(await takes(without)).toBe(false);
    await rig.close();
  });
});

const guarded = await natsServerForFile({
  config: `
listen: "127.0.0.1:$PORT"
jetstream { store_dir: $NATS_STORE, max_file_store: 1GB }
authorization {
  users: [{ user: u, password: p, permissions: { publish: { deny: "$JS.API.STREAM.UPDATE.>" } } }]
}`,
});

test("atomic batches stay disabled if the gateway may not update streams", async () => {
  const url = `nats://u:p@127.0.0.1:${guarded.port}`;
  const settings = streamSettings({ atomicBatches: false });
  await ensure(settings, url);
  const log = await ensure({ ...settings, atomicBatches: true }, url);
  expect(log.join("\n")).toContain("stream cannot be set to accept atomic batches");
});

test.each([
  ["2.15.1", true],
  ["2.15.0-RC.1", true],
  ["2.16.0", true],
  ["3.0.0", true],
  ["2.14.7", false],
  ["2.10.27", false],
  ["", false],
])("atomic batches are enabled with nats-server %s: %s", (version, known) => {
  expect(storesAtomicBatchesWell(version)).toBe(known);
  const setting = atomicSetting({ atomicBatches: true }, {}, version);
  expect(setting).toEqual(known ? { allow_atomic: true } : {});
});

test("atomic batches are not enabled on a stream that aggregates other streams", () => {
  const config = { sources: [{ name: "PENSTOCK_LIVE_0" }] };
  expect(atomicSetting({ atomicBatches: true }, config, "2.15.1")).toEqual({});
});
