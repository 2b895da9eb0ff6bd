import { Agent } from "node:http";
import { describe, expect, test } from "vitest";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { ended, isRunning, penstock, temporaryFolder } from "../../kit/processes.ts";
import { asWorkers, natsWithProject, postOne, workersOn } from "../../kit/workers.ts";

describe("the supervisor of several workers", () => {
  test("ends its workers and the embedded nats-server if it is killed", async () => {
    const dataDir = temporaryFolder();
    const ports = ["--port", "0", "--admin-port", "0", "--stream-bytes-max", "8388608"];
    const started = penstock("up", "--workers", "2", "--data-dir", dataDir, ...ports);
    const gateway = await asWorkers(started);
    await expect
      .poll(() => started.said.out)
      .toContain(`Penstock is up at http://127.0.0.1:${gateway.port}`);
    const pids = [gateway.pid(0), gateway.pid(1), readConnectionNote(dataDir)?.pid ?? 0];
    expect(pids.every(isRunning)).toBe(true);
    gateway.process.kill("SIGKILL");
    await expect.poll(() => pids.filter(isRunning), { timeout: 30_000 }).toEqual([]);
  });

  test("ends a drain that does not finish after a second SIGTERM", async () => {
    const nats = await natsWithProject();
    const gateway = await workersOn(nats, "--workers", "2", "--request-timeout-ms", "60000");
    const pids = [gateway.pid(0), gateway.pid(1)];
    nats.freeze();
    const agent = new Agent();
    const answer = postOne(gateway.port, agent, "waits").catch(
      (error: NodeJS.ErrnoException) => error.code,
    );
    await expect.poll(async () => (await gateway.metrics()).get("penstock_frames_unacked")).toBe(1);
    gateway.process.kill("SIGTERM");
    // The first signals may merge into one. A later signal ends the drain.
    const again = () => gateway.process.kill("SIGTERM") || gateway.process.exitCode;
    await expect.poll(again, { timeout: 30_000, interval: 100 }).toBe(143);
    await expect.poll(() => pids.filter(isRunning), { timeout: 30_000 }).toEqual([]);
    expect(await answer).toBe("ECONNRESET");
    expect(await ended(gateway.process)).toBe(143);
  });
});
