import { Agent } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { ended } from "../../kit/processes.ts";
import { natsWithProject, postOne, titleOf, workersOn } from "../../kit/workers.ts";

const connections = 40;

test("two workers share the public port and the metrics page", async () => {
  const gateway = await workersOn(await natsWithProject(), "--workers", "2");
  expect(await gateway.readyz()).toEqual([
    200,
    { status: "ready", workers: 2, workers_ready: 2, reasons: [] },
  ]);
  for (const worker of [0, 1]) {
    expect(titleOf(gateway.pid(worker))).toMatch(/main\.\w+ worker\n$/);
    expect(titleOf(gateway.pid(worker))).not.toContain("a-secret-token");
  }

  const before = await gateway.metrics();
  const agents = Array.from(
    { length: connections },
    () => new Agent({ keepAlive: true, maxSockets: 1 }),
  );
  onTestFinished(() => agents.forEach((agent) => void agent.destroy()));
  const answers = await Promise.all(
    agents.map((agent, index) => postOne(gateway.port, agent, String(index))),
  );
  expect(new Set(answers)).toEqual(new Set([200]));

  const after = await gateway.metrics();
  const opened = [0, 1].map((worker) => {
    const series = `process_open_fds{worker="${worker}"}`;
    return (after.get(series) ?? 0) - (before.get(series) ?? 0);
  });
  // The probability that a worker gets no connection is 1 in 2^40.
  expect(Math.min(...opened)).toBeGreaterThan(0);
  expect(opened[0]! + opened[1]!).toBe(connections);
  expect(after.get('penstock_requests_total{route="capture",status="200"}')).toBe(connections);
  expect(after.get("penstock_workers")).toBe(2);
  expect(after.get("penstock_worker_restarts_total")).toBe(0);
  expect(after.get("penstock_nats_connected")).toBe(1);
  expect(after.get("penstock_projects")).toBe(1);
  expect(after.get("penstock_inflight_bytes_max")).toBe(2 * 268_435_456);
  expect(after.has('process_resident_memory_bytes{worker="supervisor"}')).toBe(true);

  gateway.process.kill("SIGTERM");
  expect(await ended(gateway.process)).toBe(0);
});
