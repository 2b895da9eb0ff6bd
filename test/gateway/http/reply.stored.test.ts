import { describe, expect, test } from "vitest";
import { oneStored, startTestServer } from "../../kit/http-server.ts";

const note = { index: 0, code: "invalid_uuid", detail: 'uuid "x" is not one' };

describe("the answer to a stored request", () => {
  test.each([
    [oneStored, { status: "Ok", accepted: 1, dropped: 0 }],
    [
      { ...oneStored, accepted: 7, dropped: 2 },
      { status: "Ok", accepted: 7, dropped: 2 },
    ],
    [
      { ...oneStored, errors: [note], errorsTotal: 30 },
      { status: "Ok", accepted: 1, dropped: 0, errors: [note], errors_total: 30 },
    ],
    [
      { ...oneStored, warnings: [note], warningsTotal: 1 },
      { status: "Ok", accepted: 1, dropped: 0, warnings: [note], warnings_total: 1 },
    ],
  ])("reports accepted and dropped events with errors or warnings: %j", async (report, answer) => {
    const server = await startTestServer();
    server.answer = (exchange) => exchange.answerStored(report);
    const response = await fetch(`${server.url}/batch/`, { method: "POST", body: "{}" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual(answer);
  });

  test.each([
    ["/capture", "capture"],
    ["/capture/?ip=0&ver=1.449.0", "capture"],
    ["/batch", "batch"],
    ["/batch/", "batch"],
  ])("to %s is counted under the endpoint %s", async (path, route) => {
    const server = await startTestServer();
    const before = { wallMs: Date.now(), monotonicMs: performance.now() };
    await fetch(server.url + path, { method: "POST", body: "{}" });
    const exchange = server.taken[0]!.exchange;
    expect(exchange.receivedAtMs).toBeGreaterThanOrEqual(before.wallMs);
    expect(exchange.deadlineMs).toBeGreaterThanOrEqual(before.monotonicMs + 5_000);
    expect(exchange.deadlineMs).toBeLessThanOrEqual(performance.now() + 5_000);
    expect(server.finished).toEqual([`${route} 200`]);
  });
});
