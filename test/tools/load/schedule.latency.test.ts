import { describe, expect, onTestFinished, test } from "vitest";
import { startTestGateway, until } from "../../kit/gateway.ts";
import { load, standIn } from "./load-kit.ts";

const frozenMs = 1_000;

describe("the load test", () => {
  test("measures latency from a request's scheduled time", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const project = await gateway.project();
    const running = load(
      "--url",
      gateway.url,
      "--key",
      project.key,
      "--nats-url",
      gateway.nats.url,
      "--rate",
      "100",
      "--duration",
      "3",
      "--warm-up",
      "0",
      "--connections",
      "4",
    );
    await until(async () => (await gateway.events(project)).length > 30);
    gateway.nats.freeze();
    setTimeout(() => gateway.nats.thaw(), frozenMs);
    const { code, result } = await running;
    expect(result.failures).toEqual([]);
    expect(code).toBe(0);
    expect(result.requests.late).toBeGreaterThan(75);
    // A third of all requests were due while the store was frozen.
    expect(result.latencyFromDueMs?.p90).toBeGreaterThan(0.5 * frozenMs);
    expect(result.latencyFromDueMs?.max).toBeGreaterThan(0.9 * frozenMs);
    expect(result.latencyFromSentMs?.p90).toBeLessThan(0.5 * frozenMs);
    expect(result.stored).toMatchObject({ storedOnce: 300, lost: 0 });
  });

  test("does not slow down for a slow gateway", async () => {
    const url = await standIn((_, response) => {
      setTimeout(() => response.end('{"status":"Ok","accepted":1,"dropped":0}'), 100);
    });
    const { code, result } = await load(
      "--url",
      url,
      "--rate",
      "200",
      "--duration",
      "1",
      "--warm-up",
      "0",
      "--connections",
      "2",
      "--backlog",
      "10",
      "--grace",
      "0.3",
      "--p99-ms",
      "150",
    );
    expect(code).toBe(1);
    const { due, sent, notSent, acknowledged } = result.requests;
    expect(due).toBe(200);
    expect(sent + notSent).toBe(200);
    expect(notSent).toBeGreaterThan(150);
    expect(acknowledged).toBe(sent);
    // Ten requests wait in the backlog. Two are sent at a time, and each takes a tenth of a second.
    expect(result.latencyFromDueMs?.max).toBeGreaterThan(400);
    expect(result.failures).toEqual([
      expect.stringContaining("not held"),
      expect.stringContaining("the p99 is"),
    ]);
  });
});
