import { expect, test } from "vitest";
import { ended, isRunning } from "../embedded/embedded-kit.ts";
import { natsWithProject, startLoad, storedIds, workersOn } from "./workers-kit.ts";

test("SIGTERM under load ends all with 0, and what was acknowledged is stored", async () => {
  const nats = await natsWithProject();
  const gateway = await workersOn(nats, "--workers", "3");
  const pids = [0, 1, 2].map((worker) => gateway.pid(worker));
  const load = startLoad(gateway.port, 24);
  const count = () => load.clients.reduce((sum, client) => sum + client.acknowledged.length, 0);
  await expect.poll(count, { timeout: 10_000 }).toBeGreaterThan(500);
  gateway.process.kill("SIGTERM");
  expect(await ended(gateway.process)).toBe(0);
  await load.stop();
  expect(pids.filter(isRunning)).toEqual([]);
  for (const { refused } of load.clients) expect(refused.filter((status) => status !== 503)).toEqual([]);
  const stored = await storedIds(nats);
  const acknowledged = load.clients.flatMap((client) => client.acknowledged);
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
});
