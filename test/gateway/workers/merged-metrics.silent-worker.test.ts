import { Agent } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { ended } from "../../kit/processes.ts";
import { liveStored, natsWithProject, postOne, workersOn } from "../../kit/workers.ts";

test("a frozen worker does not delay the metrics page or readiness", async () => {
  const gateway = await workersOn(await natsWithProject(), "--workers", "2");
  const agents = Array.from({ length: 30 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  onTestFinished(() => agents.forEach((agent) => void agent.destroy()));
  await Promise.all(agents.map((agent, index) => postOne(gateway.port, agent, String(index))));
  expect((await gateway.metrics()).get(liveStored)).toBe(30);

  const frozen = gateway.pid(1);
  process.kill(frozen, "SIGSTOP");
  try {
    const sinceMs = performance.now();
    expect((await gateway.metrics()).get(liveStored)).toBe(30);
    const reasons = ["worker 1: no answer"];
    const half = { status: "ready", workers: 2, workers_ready: 1, reasons };
    await expect.poll(() => gateway.readyz(), { timeout: 30_000 }).toEqual([200, half]);
    expect(performance.now() - sinceMs).toBeLessThan(5_000);
  } finally {
    process.kill(frozen, "SIGCONT");
  }
  gateway.process.kill("SIGTERM");
  expect(await ended(gateway.process)).toBe(0);
});
