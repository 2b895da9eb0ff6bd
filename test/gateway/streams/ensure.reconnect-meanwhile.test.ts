import type { StreamInfo } from "@nats-io/jetstream";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, expect, test } from "vitest";
import { Streams } from "../../../src/gateway/streams/ensure.ts";
import { connectNats, type NatsLink } from "../../../src/platform/nats/link.ts";
import { streamName } from "../../../src/platform/nats/names.ts";
import { alteredStreamInfo } from "../../kit/altered-stream-info.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { recordingLog, streamSettings } from "../../kit/publisher-rig.ts";

const soon = { timeout: 30_000, interval: 20 };
const server = await natsServerForFile();
const log = recordingLog([]);
const real = await connectNats({ access: { natsUrl: server.url, natsToken: server.token }, log });
const { streams: manager } = await jetstreamManager(real.connection);
afterAll(() => real.close());

function rigOf(settings = streamSettings()) {
  const live = streamName(settings.subjectPrefix, "live", 0);
  const historical = streamName(settings.subjectPrefix, "historical", 0);
  const seen = { isSilent: false, live: 0, silences: 0 };
  const answered = ({ config }: Partial<StreamInfo>): undefined => {
    if (config?.name === live) seen.live++;
    if (config?.name !== historical || !seen.isSilent) return;
    seen.silences++;
    throw new Error("no answer in time");
  };
  const listeners: ((connected: boolean) => void)[] = [];
  const link: NatsLink = {
    connection: alteredStreamInfo(real.connection, answered),
    connected: true,
    messageBytesMax: real.messageBytesMax,
    send: () => {},
    tryAnotherServer: () => false,
    onDenied() {},
    refusal: () => undefined,
    onChange: (listener) => void listeners.push(listener),
    close: async () => {},
  };
  const reconnect = (): void => {
    for (const listener of listeners) listener(true);
  };
  return { streams: new Streams({ link, settings, log }), settings, live, seen, reconnect };
}

const isThere = (name: string): Promise<boolean> =>
  manager.info(name).then(
    () => true,
    () => false,
  );

test("a missing stream is created at a second reconnect if another stream hangs", async () => {
  const { streams, live, seen, reconnect } = rigOf();
  await streams.ensure();
  Object.assign(seen, { isSilent: true, live: 0 });
  reconnect();
  await expect.poll(() => seen.live > 0 && seen.silences > 0, soon).toBe(true);
  await manager.delete(live);
  reconnect();
  await expect.poll(() => isThere(live), soon).toBe(true);
  seen.isSilent = false;
});

test("the creation of streams restarts if NATS reconnects before all streams exist", async () => {
  const rig = rigOf();
  await rig.streams.ensure();
  const { streams, live, seen, reconnect } = rigOf(rig.settings);
  seen.isSilent = true;
  const ensured = streams.ensure();
  await expect.poll(() => seen.silences, soon).toBeGreaterThan(0);
  await manager.delete(live);
  reconnect();
  seen.isSilent = false;
  await ensured;
  expect(await isThere(live)).toBe(true);
});
