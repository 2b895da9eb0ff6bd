import { Agent } from "node:http";
import { describe, expect, test } from "vitest";
import { ended, isRunning } from "../../kit/processes.ts";
import { natsWithProject, postOne, startLoad, storedIds, workersOn } from "../../kit/workers.ts";

describe("on SIGTERM the workers", () => {
  test("all exit with 0 under load", async () => {
    const nats = await natsWithProject();
    const gateway = await workersOn(nats, "--workers", "3");
    const pids = [0, 1, 2].map((worker) => gateway.pid(worker));
    const load = startLoad(gateway.port, 24);
    const count = () => load.clients.reduce((sum, client) => sum + client.acknowledged.length, 0);
    await expect.poll(count, { timeout: 30_000 }).toBeGreaterThan(500);
    gateway.process.kill("SIGTERM");
    expect(await ended(gateway.process)).toBe(0);
    await load.stop();
    expect(pids.filter(isRunning)).toEqual([]);
    for (const { refused } of load.clients)
      expect(refused.filter((status) => status !== 503)).toEqual([]);
    const stored = await storedIds(nats);
    const acknowledged = load.clients.flatMap((client) => client.acknowledged);
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  });

  test("answer their requests before they exit", async () => {
    const nats = await natsWithProject();
    const gateway = await workersOn(nats, "--workers", "2");
    const agents = Array.from({ length: 20 }, () => new Agent());
    nats.freeze();
    const answers = agents.map((agent, index) => postOne(gateway.port, agent, String(index)));
    const inflight = async () => (await gateway.metrics()).get("penstock_requests_inflight");
    await expect.poll(inflight, { timeout: 30_000 }).toBe(20);
    gateway.process.kill("SIGTERM");
    const reasons = ["worker 0: shutting down", "worker 1: shutting down"];
    await expect
      .poll(() => gateway.readyz(), { timeout: 3_000 })
      .toEqual([
        503,
        expect.objectContaining({ status: "unready", workers: 2, workers_ready: 0, reasons }),
      ]);
    nats.thaw();
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    expect(await ended(gateway.process)).toBe(0);
    expect((await storedIds(nats)).size).toBe(20);
  });
});
