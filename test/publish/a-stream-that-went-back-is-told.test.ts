import { cpSync, rmSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { linesOf, type Rig, startRig, stored } from "./rig.ts";

const within = { timeout: 5_000, interval: 50 };

async function start(): Promise<{ server: TestNatsServer; rig: Rig }> {
  const server = await startNatsServer();
  onTestFinished(() => server.remove());
  const rig = await startRig(server, { watchEveryMs: 50 });
  onTestFinished(() => rig.close());
  return { server, rig };
}

/** The disk as it was before the last events, as when a server comes back from an older copy of it. */
async function backToAnOlderDisk({ server, rig }: { server: TestNatsServer; rig: Rig }): Promise<void> {
  const copy = `${server.storeDir}-copy`;
  expect(await rig.send("live", "one")).toEqual(stored);
  await server.kill();
  cpSync(server.storeDir, copy, { recursive: true });
  await server.restart();
  for (const line of ["two", "three"]) expect((await rig.send("live", line)).outcome).toMatch(/^(stored|duplicate)$/);
  expect(rig.heard.wentBack).toEqual([]);
  await server.kill();
  rmSync(server.storeDir, { recursive: true });
  cpSync(copy, server.storeDir, { recursive: true });
  await server.restart();
  await vi.waitFor(() => expect(rig.link.connected).toBe(true), within);
}

function toldIn(rig: Rig): string[] {
  return rig.log.filter((line) => /went back|made anew/.test(line));
}

test("an acknowledgement below one before it says that events are gone: once, and events are still taken", async () => {
  const { server, rig } = await start();
  await backToAnOlderDisk({ server, rig });
  for (const line of ["four", "five"]) expect((await rig.send("live", line)).outcome).toMatch(/^(stored|duplicate)$/);
  await vi.waitFor(() => expect(rig.heard.wentBack).toEqual(["cut_back"]), within);
  const name = `${rig.settings.subjectPrefix}_LIVE_0`.toUpperCase();
  expect((await rig.streams.check()).join()).toMatch(`stream ${name} went back from sequence 3 to `);
  expect(toldIn(rig)).toEqual([expect.stringContaining('"acknowledged":3')]);
  expect(await rig.send("live", "six")).toEqual(stored);
  expect(rig.publisher.refusal()).toBeUndefined();
  expect(linesOf(await rig.stored("live"))).toEqual(["one", "four", "five", "six"]);
  await rig.streams.check();
  expect(rig.heard.wentBack).toEqual(["cut_back"]);
});

test("it is seen without any event, too", async () => {
  const { server, rig } = await start();
  await backToAnOlderDisk({ server, rig });
  await vi.waitFor(() => expect(rig.heard.wentBack).toEqual(["cut_back"]), within);
  expect(toldIn(rig)).toEqual([expect.stringContaining('"acknowledged":3,"now":1')]);
});

test("a stream that was made anew is told as that, and the gateway stays ready", async () => {
  const { server, rig } = await start();
  for (const line of ["one", "two"]) expect(await rig.send("live", line)).toEqual(stored);
  await server.kill();
  rmSync(server.storeDir, { recursive: true });
  await server.restart();
  await vi.waitFor(() => expect(rig.heard.wentBack).toContain("made_anew"), within);
  await vi.waitFor(async () => expect(await rig.streams.check()).toEqual([]), within);
  expect(await rig.send("live", "three")).toEqual(stored);
  expect(linesOf(await rig.stored("live"))).toEqual(["three"]);
  expect(rig.heard.wentBack).not.toContain("cut_back");
});

test("acknowledgements of old frames that come late prove nothing", async () => {
  const { rig } = await start();
  const state = rig.streams.states.of("live", 0);
  const sends = Array.from({ length: 20 }, (_, number) => rig.send("live", `${number}`, { project: `p${number}` }));
  for (const sent of await Promise.all(sends)) expect(sent).toEqual(stored);
  expect(state.sequence).toBe(20);
  await rig.streams.check();
  expect(rig.heard.wentBack).toEqual([]);
});
