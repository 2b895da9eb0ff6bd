import { describe, expect, test } from "vitest";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { ended, isRunning, temporaryFolder } from "../../kit/processes.ts";
import { type LoadResult, startLoad, storedIds, upOn } from "../../kit/up-process.ts";

const storedBefore = 2_000;

async function expectKept(dataDir: string, result: LoadResult): Promise<void> {
  const next = await upOn(dataDir);
  const counts = await storedIds(dataDir);
  expect([...result.stored].filter((id) => !counts.has(id))).toEqual([]);
  expect([...counts].filter(([, count]) => count !== 1)).toEqual([]);
  expect([...result.refused].filter((id) => counts.has(id))).toEqual([]);
  // All other stored events are events without an answer.
  expect(
    [...counts.keys()].filter((id) => !result.stored.has(id) && !result.unknown.has(id)),
  ).toEqual([]);
  next.child.kill("SIGTERM");
  expect(await ended(next.child)).toBe(0);
}

async function framesUnacked(adminUrl: string): Promise<number> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^penstock_frames_unacked (\d+)$/m.exec(metrics)?.[1]);
}

describe("acknowledged events", () => {
  test("are stored exactly once after SIGTERM", async () => {
    const dataDir = temporaryFolder();
    const { child, url, adminUrl } = await upOn(dataDir);
    const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
    const { result, ended: loadEnded } = startLoad(url);
    await expect
      .poll(() => result.stored.size, { timeout: 30_000, interval: 10 })
      .toBeGreaterThan(storedBefore);
    // While nats-server is frozen, the accepted requests wait for it.
    process.kill(serverPid, "SIGSTOP");
    await expect
      .poll(() => framesUnacked(adminUrl), { timeout: 30_000, interval: 10 })
      .toBeGreaterThan(0);
    const atSignal = result.stored.size;
    child.kill("SIGTERM");
    process.kill(serverPid, "SIGCONT");
    expect(await ended(child)).toBe(0);
    await loadEnded;
    expect(result.stored.size).toBeGreaterThan(atSignal);
    expect(result.refused.size).toBeGreaterThan(0);
    await expectKept(dataDir, result);
  });

  test("are stored exactly once after SIGKILL of gateway and nats-server", async () => {
    const dataDir = temporaryFolder();
    const { child, url } = await upOn(dataDir);
    const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
    expect(isRunning(serverPid)).toBe(true);
    const { result, ended: loadEnded } = startLoad(url);
    await expect
      .poll(() => result.stored.size, { timeout: 30_000, interval: 10 })
      .toBeGreaterThan(storedBefore);
    child.kill("SIGKILL");
    process.kill(serverPid, "SIGKILL");
    expect(await ended(child)).toBe("SIGKILL");
    await loadEnded;
    expect(result.unknown.size).toBeGreaterThan(0);
    await expectKept(dataDir, result);
  });
});
