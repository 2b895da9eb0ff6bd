import { describe, expect, test } from "vitest";
import { readConnectionNote } from "../../src/platform/embedded/nats-config.ts";
import { ended, isRunning, penstock, temporaryFolder } from "../kit/processes.ts";

const start = ["--stream-bytes-max", "8388608", "--port", "0", "--admin-port", "0"];

describe("`penstock up`", () => {
  test("stops once if three SIGINTs arrive at the same time", async () => {
    const gateway = penstock("up", "--data-dir", temporaryFolder(), ...start);
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("Penstock is up");
    for (let times = 0; times < 3; times++) gateway.kill("SIGINT");
    expect(await ended(gateway)).toBe(0);
  });

  test("does not restart nats-server after SIGHUP", async () => {
    const dataDir = temporaryFolder();
    const gateway = penstock("up", "--data-dir", dataDir, ...start);
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("Penstock is up");
    const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
    gateway.kill("SIGHUP");
    process.kill(serverPid, "SIGTERM");
    expect(await ended(gateway)).toBe(0);
    expect(gateway.said.err).not.toContain("embedded nats-server restarted");
    expect(isRunning(serverPid)).toBe(false);
  });

  test("exits immediately on a second SIGTERM if its shutdown hangs", async () => {
    const dataDir = temporaryFolder();
    const gateway = penstock("up", "--data-dir", dataDir, ...start);
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("Penstock is up");
    const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
    process.kill(serverPid, "SIGSTOP");
    try {
      gateway.kill("SIGTERM");
      // The first signals may merge into one. A later signal ends the stop.
      await expect
        .poll(() => gateway.kill("SIGTERM") || gateway.exitCode, { timeout: 30_000, interval: 100 })
        .toBe(143);
    } finally {
      process.kill(serverPid, "SIGKILL");
    }
    await expect.poll(() => isRunning(serverPid), { timeout: 30_000 }).toBe(false);
  });
});
