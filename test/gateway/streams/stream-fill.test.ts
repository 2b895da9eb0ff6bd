import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, onTestFinished, test } from "vitest";
import { StreamWatch, type StreamWatchOptions } from "../../../src/gateway/streams/watch.ts";
import type { StreamSize } from "../../../src/gateway/streams/watched-stream.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { mebibyte, type Rig, startRig } from "../../kit/publisher-rig.ts";

function watchOf(rig: Rig, link: StreamWatchOptions["link"]) {
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  const { settings, streams } = rig;
  return new StreamWatch({
    link,
    settings,
    streams: streams.states,
    metrics: { streamRegressed: () => {} },
    log: quiet,
    monotonicMs: () => performance.now(),
    everyMs: 20,
  });
}

const within = { timeout: 30_000 };

describe("the fill level of a stream", () => {
  test("is requested for each stream of the gateway", async () => {
    const server = await startNatsServer();
    onTestFinished(() => server.remove());
    const rig = await startRig(server, { settings: { partitions: 2 } });
    onTestFinished(() => rig.close());
    const asked: string[] = [];
    const connection = rig.link.connection;
    const listener = connection.subscribe("$JS.API.STREAM.>", {
      callback: (_, { subject }) => void asked.push(subject),
    });
    await connection.flush();
    const watch = watchOf(rig, rig.link);
    onTestFinished(() => watch.close());
    await expect.poll(() => watch.sizes(), within).toHaveLength(4);
    await expect.poll(() => asked.length, within).toBeGreaterThan(8);
    const prefix = rig.settings.subjectPrefix.toUpperCase();
    const names = ["LIVE", "HISTORICAL"].flatMap((lane) =>
      [0, 1].map((partition) => `${prefix}_${lane}_${partition}`),
    );
    expect([...new Set(asked)].sort()).toEqual(
      names.map((name) => `$JS.API.STREAM.INFO.${name}`).sort(),
    );
    listener.unsubscribe();
  });

  test("is known while the server does not respond", async () => {
    const server = await startNatsServer();
    onTestFinished(() => server.remove());
    const rig = await startRig(server, {
      settings: { partitions: 2, streamBytesMax: 16 * mebibyte },
    });
    onTestFinished(() => rig.close());
    const { link, settings } = rig;
    const manager = await jetstreamManager(link.connection);
    const subjects = [`${settings.subjectPrefix}.archive.*`];
    await manager.streams.add({ name: "SOMEBODY_ELSES", subjects });

    let looks = 0;
    const watched = {
      connection: link.connection,
      messageBytesMax: link.messageBytesMax,
      onChange: (listener: (connected: boolean) => void) => link.onChange(listener),
      tryAnotherServer: () => link.tryAnotherServer(),
      onDenied: () => {},
      get connected() {
        looks++;
        return link.connected;
      },
    };
    const watch = watchOf(rig, watched);
    onTestFinished(() => watch.close());
    const of = (lane: string, partition: string): StreamSize | undefined =>
      watch.sizes().find(({ labels }) => labels.lane === lane && labels.partition === partition);
    await expect.poll(() => watch.sizes(), within).toHaveLength(4);
    expect(of("live", "1")).toEqual({
      labels: { lane: "live", partition: "1" },
      bytes: 0,
      bytesMax: 16 * mebibyte,
    });

    await rig.send("historical", "x".repeat(100_000));
    const historical = () =>
      Math.max(of("historical", "0")?.bytes ?? 0, of("historical", "1")?.bytes ?? 0);
    await expect.poll(historical, within).toBeGreaterThan(100_000);
    const bytes = historical();

    await manager.streams.update(`${settings.subjectPrefix}_LIVE_1`.toUpperCase(), {
      max_bytes: -1,
    });
    await expect.poll(() => of("live", "1")?.bytesMax, within).toBe(Number.POSITIVE_INFINITY);
    await manager.streams.delete(`${settings.subjectPrefix}_LIVE_1`.toUpperCase());
    await expect.poll(() => watch.sizes(), within).toHaveLength(3);

    await server.kill();
    await expect.poll(() => link.connected, within).toBe(false);
    const looksBefore = looks;
    await expect.poll(() => looks, within).toBeGreaterThan(looksBefore + 2);
    expect(historical()).toBe(bytes);
    await server.restart();
    await expect.poll(() => link.connected, within).toBe(true);
    await manager.streams.purge(`${settings.subjectPrefix}_HISTORICAL_0`.toUpperCase());
    await manager.streams.purge(`${settings.subjectPrefix}_HISTORICAL_1`.toUpperCase());
    await expect.poll(historical, within).toBe(0);
  });
});
