// A gateway process that ends under load, told to or killed: at the next start on its folder every
// event it acknowledged is stored exactly once, and nothing it refused.

import { describe, expect, test } from "vitest";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { ended, isRunning, temporaryFolder } from "../../kit/processes.ts";
import { startLoad, storedIds, type Told, upOn } from "../../kit/up-process.ts";

const storedBefore = 2_000;

async function expectKept(dataDir: string, told: Told): Promise<void> {
  const next = await upOn(dataDir);
  const counts = await storedIds(dataDir);
  expect([...told.stored].filter((id) => !counts.has(id))).toEqual([]);
  expect([...counts].filter(([, count]) => count !== 1)).toEqual([]);
  expect([...told.refused].filter((id) => counts.has(id))).toEqual([]);
  // What is there beyond the acknowledged can only be what nobody was told about.
  expect([...counts.keys()].filter((id) => !told.stored.has(id) && !told.unknown.has(id))).toEqual(
    [],
  );
  next.child.kill("SIGTERM");
  expect(await ended(next.child)).toBe(0);
}

async function framesUnacked(adminUrl: string): Promise<number> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^penstock_frames_unacked (\d+)$/m.exec(metrics)?.[1]);
}

describe("what was acknowledged outlives the process", () => {
  test("SIGTERM: it answers what it has taken, ends with 0, and all of it is there", async () => {
    const dataDir = temporaryFolder();
    const { child, url, adminUrl } = await upOn(dataDir);
    const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
    const { told, ended: loadEnded } = startLoad(url);
    await expect
      .poll(() => told.stored.size, { timeout: 30_000, interval: 10 })
      .toBeGreaterThan(storedBefore);
    // While nats-server stands still, what the gateway has taken waits for it.
    process.kill(serverPid, "SIGSTOP");
    await expect
      .poll(() => framesUnacked(adminUrl), { timeout: 30_000, interval: 10 })
      .toBeGreaterThan(0);
    const atSignal = told.stored.size;
    child.kill("SIGTERM");
    process.kill(serverPid, "SIGCONT");
    expect(await ended(child)).toBe(0);
    await loadEnded;
    expect(told.stored.size).toBeGreaterThan(atSignal);
    expect(told.refused.size).toBeGreaterThan(0);
    await expectKept(dataDir, told);
  });

  test.each([["the gateway alone"], ["the gateway and its nats-server"]])(
    "SIGKILL of %s",
    async (which) => {
      const dataDir = temporaryFolder();
      const { child, url } = await upOn(dataDir);
      const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
      expect(isRunning(serverPid)).toBe(true);
      const { told, ended: loadEnded } = startLoad(url);
      await expect
        .poll(() => told.stored.size, { timeout: 30_000, interval: 10 })
        .toBeGreaterThan(storedBefore);
      child.kill("SIGKILL");
      if (which.includes("nats-server")) process.kill(serverPid, "SIGKILL");
      expect(await ended(child)).toBe("SIGKILL");
      await loadEnded;
      expect(told.unknown.size).toBeGreaterThan(0);
      await expectKept(dataDir, told);
    },
  );
});
