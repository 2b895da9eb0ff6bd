import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { ended } from "../../kit/processes.ts";
import { natsWithProject, serve, workersOn } from "../../kit/workers.ts";

test("without --workers there is one process and no worker label", async () => {
  const nats = await natsWithProject();
  const gateway = await workersOn(nats);
  const children = execFileSync("ps", ["-A", "-o", "ppid=,args="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => Number.parseInt(line, 10) === gateway.process.pid);
  expect(children).toEqual([]);
  expect(await gateway.readyz()).toEqual([200, { status: "ready" }]);
  const series = await gateway.metrics();
  expect(series.get("penstock_workers")).toBe(1);
  expect(series.get("penstock_worker_restarts_total")).toBe(0);
  expect(series.has("process_resident_memory_bytes")).toBe(true);
  expect([...series.keys()].filter((name) => name.includes('worker="'))).toEqual([]);

  const second = serve(nats, "--port", String(gateway.port), "--workers", "2");
  expect(await ended(second)).toBe(1);
  expect(second.said.err).toContain("the port is taken");
  gateway.process.kill("SIGTERM");
  expect(await ended(gateway.process)).toBe(0);
});
