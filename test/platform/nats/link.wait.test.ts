import { afterEach, describe, expect, test, vi } from "vitest";
import { Streams } from "../../../src/gateway/streams/ensure.ts";
import { connectNats } from "../../../src/platform/nats/link.ts";
import { startNatsServer, type TestNatsServer } from "../../kit/nats-server.ts";
import { recordingLog, startRig, stored, streamSettings } from "../../kit/publisher-rig.ts";

let server: TestNatsServer | undefined;
afterEach(() => server?.remove());

describe("the gateway", () => {
  test("waits for NATS without a time limit", async () => {
    server = await startNatsServer();
    await server.kill();
    const log: string[] = [];
    const connecting = connectNats({ access: { natsUrl: server.url }, log: recordingLog(log) });
    await vi.waitFor(() => expect(log.join()).toContain("waiting for NATS"), 5_000);
    await server.restart();
    const link = await connecting;
    expect(link.connected).toBe(true);
    await link.close();
    const rig = await startRig(server);
    expect(await rig.send("live", "now")).toEqual(stored);
    await rig.close();
  });

  test("stops waiting for NATS when the signal aborts", async () => {
    server = await startNatsServer();
    await server.kill();
    const abort = new AbortController();
    const log: string[] = [];
    const connecting = connectNats({
      access: { natsUrl: server.url },
      log: recordingLog(log),
      signal: abort.signal,
    });
    const ended = expect(connecting).rejects.toThrow(/abort/i);
    await vi.waitFor(() => expect(log.join()).toContain("waiting for NATS"), 5_000);
    abort.abort();
    await ended;
  });

  test("waits for JetStream until the signal aborts", async () => {
    server = await startNatsServer({ jetstream: false });
    const log: string[] = [];
    const link = await connectNats({ access: { natsUrl: server.url }, log: recordingLog(log) });
    const streams = new Streams({ link, settings: streamSettings(), log: recordingLog(log) });
    const abort = new AbortController();
    const ended = expect(streams.ensure(abort.signal)).rejects.toThrow(/abort/i);
    await vi.waitFor(() => expect(log.join()).toContain("waiting for JetStream"), 5_000);
    abort.abort();
    await ended;
    await link.close();
  });
});
