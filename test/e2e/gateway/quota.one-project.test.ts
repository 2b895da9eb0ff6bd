import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { type Answer, type TestProject, until } from "../../kit/gateway.ts";

/** The rate is so low that nothing is refilled during a test. */
const hourly = { eventsPerSecond: 5 / 3_600, burstSeconds: 3_600 };

const gateway = await gatewayForFile();
const other = await gateway.project();

interface Sent {
  readonly padding?: number;
  readonly historical?: boolean;
}

function send(
  { key }: TestProject,
  events: number,
  { padding = 0, historical = false }: Sent = {},
): Promise<Answer> {
  const event = {
    event: "e",
    distinct_id: "u",
    timestamp: "2026-01-01",
    properties: { text: "x".repeat(padding) },
  };
  return gateway.post("/batch/", {
    api_key: key,
    historical_migration: historical,
    batch: Array(events).fill(event),
  });
}

async function refusedEvents(lane: string): Promise<number> {
  const series = `penstock_events_total{lane="${lane}",outcome="refused",reason="rate_limited"}`;
  return Number(
    (await gateway.metrics())
      .split("\n")
      .find((line) => line.startsWith(series))
      ?.slice(series.length),
  );
}

async function limitedProject(): Promise<{ project: TestProject; stored: number }> {
  const project = await gateway.project();
  await gateway.limit(project, hourly);
  let stored = 0;
  await until(async () => {
    const { status } = await send(project, 90);
    if (status === 200) stored += 90;
    return status === 429;
  });
  return { project, stored };
}

describe("a project's quota", () => {
  test("rejects whole requests in both streams with 429", async () => {
    const { project, stored } = await limitedProject();
    const before = {
      live: await refusedEvents("live"),
      historical: await refusedEvents("historical"),
    };
    const large = { padding: 600_000 };
    const answers = [
      await send(project, 1),
      await send(project, 100),
      await send(project, 3, large),
      await send(project, 3, { ...large, historical: true }),
    ];
    for (const { status, headers, json } of answers) {
      expect(status).toBe(429);
      expect(headers.get("content-type")).toBe("application/problem+json");
      expect(json).toMatchObject({
        status: 429,
        code: "rate_limited",
        title: "The project is over its quota",
      });
      expect(json["detail"]).toBe(
        `The project is over its quota of ${hourly.eventsPerSecond} events a second: try again later`,
      );
      const seconds = Number(headers.get("retry-after"));
      // The quota allows a request again after an hour or more, so Retry-After is the maximum, with
      // jitter.
      expect(seconds).toBeGreaterThanOrEqual(56);
      expect(seconds).toBeLessThanOrEqual(60);
    }
    // The gateway rejects bodies of this size before it counts their events.
    expect(await refusedEvents("live")).toBe(before.live + 101);
    expect(await refusedEvents("historical")).toBe(before.historical);
    for (const lane of ["live", "historical"] as const) {
      expect(await gateway.events(project, lane)).toHaveLength(lane === "live" ? stored : 0);
      expect((await send(other, 100, { historical: lane === "historical" })).status).toBe(200);
    }
  });

  test("applies within a second when it is set, changed or removed", async () => {
    const { project } = await limitedProject();
    const isTakenSoon = (status: number) =>
      until(async () => (await send(project, 1)).status === status);
    await gateway.limit(project, { ...hourly, eventsPerSecond: 1e9 });
    await isTakenSoon(200);
    await gateway.limit(project, { bytesPerSecond: 0.001, burstSeconds: 1 });
    await until(async () => (await send(project, 1, { padding: 60_000 })).status === 429);
    await gateway.limit(project, undefined);
    await isTakenSoon(200);
  });

  test("limits the rate with a short Retry-After", async () => {
    const project = await gateway.project();
    const limits = { eventsPerSecond: 100, burstSeconds: 1 };
    await gateway.limit(project, limits);
    await until(async () => (await send(project, 110)).status === 429);
    // On a slow machine a token may have been refilled. Then the request is repeated.
    let { status, headers } = await send(project, 1);
    while (status === 200) ({ status, headers } = await send(project, 10));
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(6);
    let accepted = 0;
    let refused = 0;
    const beganMs = performance.now();
    while (accepted < 150) {
      if ((await send(project, 10)).status === 200) accepted += 10;
      else refused++;
    }
    const seconds = (performance.now() - beganMs) / 1_000;
    // At most the burst, the refilled tokens, and one request that may exceed them.
    expect(accepted).toBeLessThanOrEqual(100 + 100 * seconds + 10);
    expect(refused).toBeGreaterThan(0);
  });
});
