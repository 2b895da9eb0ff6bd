import { cpSync, rmSync } from "node:fs";
import { jetstreamManager, StorageType, type StreamInfo } from "@nats-io/jetstream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { StreamHistory } from "../../../src/gateway/streams/history.ts";
import { StreamStates, suspend } from "../../../src/platform/nats/readiness.ts";
import { startNatsServer, type TestNatsServer } from "../../kit/nats-server.ts";
import { linesOf, liveStream, type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const within = { timeout: 30_000, interval: 50 };

async function start({ watchEveryMs = 50 } = {}): Promise<{ server: TestNatsServer; rig: Rig }> {
  const server = await startNatsServer();
  onTestFinished(() => server.remove());
  const rig = await startRig(server, { watchEveryMs });
  onTestFinished(() => rig.close());
  return { server, rig };
}

async function backToAnOlderDisk({
  server,
  rig,
}: {
  server: TestNatsServer;
  rig: Rig;
}): Promise<void> {
  const copy = `${server.storeDir}-copy`;
  expect(await rig.send("live", "one")).toEqual(stored);
  await server.kill();
  cpSync(server.storeDir, copy, { recursive: true });
  await server.restart();
  for (const line of ["two", "three"])
    expect((await rig.send("live", line)).outcome).toMatch(/^(stored|duplicate)$/);
  expect(rig.heard.regression).toEqual([]);
  await server.kill();
  rmSync(server.storeDir, { recursive: true });
  cpSync(copy, server.storeDir, { recursive: true });
  await server.restart();
  await vi.waitFor(() => expect(rig.link.connected).toBe(true), within);
}

function toldIn(rig: Rig): string[] {
  return rig.log.filter((line) => /went back|recreated/.test(line));
}

describe("a loss of acknowledged events", () => {
  test("is reported once if a frame gets a lower sequence than before", async () => {
    const { server, rig } = await start({ watchEveryMs: 3_600_000 });
    await backToAnOlderDisk({ server, rig });
    expect(await rig.send("live", "four")).toEqual({ outcome: "unknown", code: "unavailable" });
    await vi.waitFor(() => expect(rig.heard.regression).toEqual(["cut_back"]), within);
    const name = liveStream(rig);
    expect((await rig.streams.check()).join()).toMatch(
      `stream ${name} went back from sequence 3 to `,
    );
    expect(toldIn(rig)).toEqual([expect.stringContaining('"acknowledged":3')]);
    for (const line of ["five", "six"]) expect(await rig.send("live", line)).toEqual(stored);
    expect(rig.publisher.refusal()).toBeUndefined();
    expect(linesOf(await rig.stored("live"))).toEqual(["one", "four", "five", "six"]);
    await rig.streams.check();
    expect(rig.heard.regression).toEqual(["cut_back"]);
  });

  test("makes the stream refuse events if sequences repeat on a running server", async () => {
    const { server, rig } = await start({ watchEveryMs: 3_600_000 });
    const name = liveStream(rig);
    for (const line of ["one", "two"]) expect(await rig.send("live", line)).toEqual(stored);
    const state = rig.streams.states.of("live", 0);
    await rig.streams.check();
    // nats-server 2.10 behaves like this on a full disk.
    state.sequence = 900;
    suspend(state, { from: 900, to: 1 }, performance.now());
    expect(rig.publisher.refusalOf("live", "alpha")?.detail).toContain(
      `Stream ${name} assigned sequence 1 after 900`,
    );
    expect(await rig.send("live", "three")).toEqual({ outcome: "refused", code: "unavailable" });
    for (const _ of [1, 2])
      expect((await rig.streams.check()).join()).toMatch(
        /sequences twice .* restart an external nats-server yourself/,
      );
    expect(rig.publisher.refusalOf("live", "alpha")?.detail).toMatch(
      /sequences twice .* restart an external nats-server yourself$/,
    );
    expect(toldIn(rig)).toHaveLength(1);
    await server.kill();
    await server.restart();
    await vi.waitFor(
      () => expect(rig.publisher.refusalOf("live", "alpha")).toBeUndefined(),
      within,
    );
    expect(await rig.send("live", "four")).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual(["one", "two", "four"]);
  });

  test("is not cleared by stream info from before the loss", async () => {
    const { rig } = await start({ watchEveryMs: 3_600_000 });
    expect(await rig.send("live", "one")).toEqual(stored);
    await rig.streams.check();
    const checked = rig.streams.check();
    suspend(rig.streams.states.of("live", 0), { from: 1, to: 1 }, performance.now());
    expect((await checked).join()).toMatch(
      /assigned a sequence twice|went back from sequence 1 to 1/,
    );
    await vi.waitFor(
      () => expect(rig.publisher.refusalOf("live", "alpha")).toBeUndefined(),
      within,
    );
    expect(await rig.send("live", "two")).toEqual(stored);
  });

  test("prevents a 200 for a stream that was recreated in memory", async () => {
    const { rig } = await start({ watchEveryMs: 3_600_000 });
    expect(await rig.send("live", "one")).toEqual(stored);
    const name = liveStream(rig);
    const { streams } = await jetstreamManager(rig.link.connection);
    const { config } = await streams.info(name);
    await streams.delete(name);
    await streams.add({ ...config, storage: StorageType.Memory, max_bytes: -1 });
    expect(await rig.send("live", "two")).toEqual({ outcome: "unknown", code: "unavailable" });
    await vi.waitFor(() => expect(rig.heard.regression).toEqual(["made_anew"]), within);
    expect(rig.publisher.refusalOf("live", "alpha")?.detail).toContain(
      "storage is memory, not file",
    );
  });

  test("is found even if no new event arrives", async () => {
    const { server, rig } = await start();
    await backToAnOlderDisk({ server, rig });
    await vi.waitFor(() => expect(rig.heard.regression).toEqual(["cut_back"]), within);
    expect(toldIn(rig)).toEqual([expect.stringContaining('"acknowledged":3,"now":1')]);
  });

  test("is reported for a recreated stream that had events", async () => {
    const { server, rig } = await start();
    for (const line of ["one", "two"]) expect(await rig.send("live", line)).toEqual(stored);
    await server.kill();
    rmSync(server.storeDir, { recursive: true });
    await server.restart();
    const name = liveStream(rig);
    const fault = `stream ${name} was recreated: the acknowledged events of the old stream, up to sequence 2, are lost`;
    await vi.waitFor(async () => expect(await rig.streams.check()).toEqual([fault]), within);
    expect(toldIn(rig)).toEqual([expect.stringContaining(name)]);
    expect(await rig.send("live", "three")).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual(["three"]);
    expect(rig.heard.regression).toEqual(["made_anew"]);
  });

  test("is recognised from the first event on", async () => {
    const { rig } = await start({ watchEveryMs: 3_600_000 });
    expect(rig.streams.heard()).toBe(rig.streams.states.all.length);
  });

  test("is not assumed for a leaf's stream that begins at a high sequence", () => {
    const { heard, history, read } = historyRig();
    read({ created: "a", firstSequence: 1_000, lastSequence: 999 });
    read({ created: "b", firstSequence: 2_000, lastSequence: 1_999 });
    expect(heard).toMatchObject({ causes: [], errors: 0 });
    read({ created: "b", firstSequence: 2_000, lastSequence: 2_000 });
    read({ created: "c", firstSequence: 3_000, lastSequence: 2_999 });
    expect(heard).toMatchObject({ causes: ["made_anew"], errors: 1 });
    expect(history.problems()).toHaveLength(1);
  });

  test("is not assumed for a recreated stream without earlier events", () => {
    const { state, heard, read } = historyRig();
    read({ created: "a", lastSequence: 0 });
    state.sequence = 3;
    read({ created: "b", lastSequence: 4 });
    expect(heard).toMatchObject({ causes: [], errors: 0 });
    state.sequence = 7;
    read({ created: "c", lastSequence: 0 });
    expect(heard).toMatchObject({ causes: ["made_anew"], errors: 1 });
  });

  test("is not assumed until a new leader has answered twice", () => {
    const { state, heard, read } = historyRig();
    read({ created: "a", lastSequence: 9 });
    for (const lastSequence of [3, 5, 9, 4, 6]) read({ created: "a", lastSequence });
    expect(heard).toMatchObject({ causes: [], errors: 0 });
    read({ created: "a", lastSequence: 6 });
    expect(heard).toMatchObject({ causes: ["cut_back"], errors: 1 });
    expect(state.sequence).toBe(6);
  });

  test("is not reported again for a frame in flight", async () => {
    const { rig } = await start({ watchEveryMs: 3_600_000 });
    expect(await rig.send("live", "one")).toEqual(stored);
    const state = rig.streams.states.of("live", 0);
    state.sequence = 900;
    state.regressionMonotonicMs = Number.POSITIVE_INFINITY;
    expect((await rig.send("live", "two")).outcome).toBe("unknown");
    expect(state.regression).toBeUndefined();
    expect(rig.publisher.refusalOf("live", "alpha")).toBeUndefined();
  });

  test("stops affecting readiness after a minute", () => {
    const { heard, history, read } = historyRig();
    read({ created: "a", lastSequence: 5 });
    read({ created: "b", lastSequence: 0 });
    heard.nowMs = 59_999;
    expect(history.problems()).toHaveLength(1);
    heard.nowMs = 60_000;
    expect(history.problems()).toEqual([]);
    expect(heard.causes).toEqual(["made_anew"]);
  });

  test("is not assumed from late acknowledgements of old frames", async () => {
    const { rig } = await start();
    const state = rig.streams.states.of("live", 0);
    const sends = Array.from({ length: 20 }, (_, number) =>
      rig.send("live", `${number}`, { project: `p${number}` }),
    );
    for (const sent of await Promise.all(sends)) expect(sent).toEqual(stored);
    expect(state.sequence).toBe(20);
    await rig.streams.check();
    expect(rig.heard.regression).toEqual([]);
  });
});

interface Reading {
  created: string;
  lastSequence: number;
  firstSequence?: number;
}

function historyRig() {
  const state = new StreamStates("test", 1).all[0]!;
  const heard = { causes: [] as string[], errors: 0, nowMs: 0 };
  const history = new StreamHistory({
    state,
    metrics: { streamRegressed: (_, cause) => void heard.causes.push(cause) },
    log: { info() {}, warn() {}, error: () => void heard.errors++ },
    monotonicMs: () => heard.nowMs,
  });
  const read = ({ created, lastSequence, firstSequence }: Reading): void => {
    const config = firstSequence === undefined ? {} : { first_seq: firstSequence };
    history.read({ created, config, state: { last_seq: lastSequence } } as StreamInfo, state);
  };
  return { state, heard, history, read };
}
