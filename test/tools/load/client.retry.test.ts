import { describe, expect, test } from "vitest";
import { load, sayStored, short, standIn } from "./load-kit.ts";

async function refusesOnce() {
  const cameAtMs = new Map<string, number[]>();
  const bodies = new Set<string>();
  const url = await standIn((body, response) => {
    const uuid = /"uuid":"([^"]+)"/.exec(body.toString())?.[1] ?? "";
    const times = cameAtMs.get(uuid) ?? [];
    cameAtMs.set(uuid, [...times, performance.now()]);
    bodies.add(body.toString());
    if (times.length > 0) return sayStored(response);
    const [status, code] = cameAtMs.size % 2 === 0 ? [503, "overloaded"] : [429, "rate_limited"];
    response.writeHead(status, { "retry-after": "1", "content-type": "application/problem+json" });
    response.end(JSON.stringify({ status, code }));
  });
  return { url, cameAtMs, bodies };
}

describe("a 429 or 503 in the load test", () => {
  test("is not retried without --retry", async () => {
    const { url, cameAtMs } = await refusesOnce();
    const { code, result } = await load("--url", url, "--rate", "40", ...short);
    expect(result.answers).toEqual({ "503 overloaded": 20, "429 rate_limited": 20 });
    expect(result.requests).toMatchObject({ sent: 40, retries: 0, acknowledged: 0 });
    expect([...cameAtMs.values()].every((times) => times.length === 1)).toBe(true);
    expect(code).toBe(1);
  });

  test("is retried after its Retry-After with --retry", async () => {
    const { url, cameAtMs, bodies } = await refusesOnce();
    const { code, result } = await load(
      "--url",
      url,
      "--rate",
      "40",
      ...short,
      "--retry",
      "--grace",
      "3",
    );
    expect(result.answers).toEqual({ "200": 40, "503 overloaded": 20, "429 rate_limited": 20 });
    expect(result.requests).toMatchObject({ sent: 40, retries: 40, acknowledged: 40 });
    expect(cameAtMs.size).toBe(40);
    expect(bodies.size).toBe(40);
    for (const [first = 0, second = 0] of cameAtMs.values())
      expect(second - first).toBeGreaterThan(980);
    expect(result.latencyFromDueMs?.p50).toBeGreaterThan(980);
    expect(code).toBe(0);
  });
});
