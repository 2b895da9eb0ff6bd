import { expect, test } from "vitest";
import { metricTable } from "../../../src/gateway/admin/metrics/metric-table.ts";
import { ended } from "../../kit/processes.ts";
import {
  liveStored,
  natsWithProject,
  restartsTotal,
  startLoad,
  storedIds,
  workersOn,
} from "../../kit/workers.ts";

const clientCount = 24;

function isCounted(series: string): boolean {
  const name = /^\w+/.exec(series)?.[0] ?? "";
  const gauges = Object.entries(metricTable).filter(([, { type }]) => type === "gauge");
  return name.startsWith("penstock_") && !gauges.some(([gauge]) => gauge === name);
}

test("a killed worker is replaced and no counter decreases", async () => {
  const nats = await natsWithProject();
  const gateway = await workersOn(nats, "--workers", "2");
  const fdsAtRest = (await gateway.metrics()).get('process_open_fds{worker="0"}') ?? 0;
  const load = startLoad(gateway.port, clientCount);
  let highest = new Map<string, number>();
  // A poll would repeat until the numbers have caught up, so they are recorded and checked at the
  // end.
  const fallen: string[] = [];
  const scrape = async (): Promise<Map<string, number>> => {
    const series = await gateway.metrics();
    for (const [name, value] of highest) if (!((series.get(name) ?? 0) >= value)) fallen.push(name);
    highest = new Map([...series].filter(([name]) => isCounted(name)));
    return series;
  };
  await expect
    .poll(async () => (await scrape()).get(liveStored), { timeout: 30_000 })
    .toBeGreaterThan(500);
  const atKill = await scrape();
  const connectionsOfKilled = (atKill.get('process_open_fds{worker="0"}') ?? 0) - fdsAtRest;
  expect(connectionsOfKilled).toBeGreaterThan(0);
  expect(connectionsOfKilled).toBeLessThan(clientCount);
  const killed = gateway.pid(0);

  process.kill(killed, "SIGKILL");
  await expect
    .poll(async () => (await scrape()).get(restartsTotal), { timeout: 30_000, interval: 20 })
    .toBe(1);
  await expect
    .poll(async () => (await scrape()).get("penstock_workers"), { timeout: 30_000, interval: 20 })
    .toBe(2);
  expect(gateway.pid(0)).not.toBe(killed);
  expect(highest.get(liveStored)).toBeGreaterThanOrEqual(atKill.get(liveStored) ?? Number.NaN);
  expect(await gateway.readyz()).toMatchObject([200, { workers_ready: 2 }]);
  await load.stop();
  await scrape();
  expect(fallen).toEqual([]);

  const harmed = load.clients.filter(({ failed }) => failed > 0);
  expect(harmed.length).toBeGreaterThan(0);
  expect(harmed.length).toBeLessThanOrEqual(connectionsOfKilled);
  for (const { failed, refused } of load.clients) {
    expect(failed).toBeLessThanOrEqual(1);
    expect(refused).toEqual([]);
  }
  gateway.process.kill("SIGTERM");
  expect(await ended(gateway.process)).toBe(0);
  const stored = await storedIds(nats);
  const acknowledged = load.clients.flatMap((client) => client.acknowledged);
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
});
