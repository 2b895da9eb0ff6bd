import { afterEach, describe, expect, test } from "vitest";
import { AdminServer } from "../../../src/gateway/admin/server.ts";
import { PortAccess } from "../../../src/platform/base/port-access.ts";

let admin: AdminServer | undefined;
let nowMs = 0;
const logged: object[] = [];

afterEach(async () => {
  await admin?.close();
  logged.length = 0;
});

async function startAdmin(
  readiness: () => Promise<string[]>,
  warnings?: () => Promise<string[]>,
): Promise<string> {
  admin = new AdminServer({
    access: new PortAccess({ admin: [], read: [] }),
    ...(warnings === undefined ? {} : { warnings }),
    metrics: { contentType: "text/plain; version=0.0.4", text: async () => "penstock_x 1\n" },
    readiness,
    log: { error: (fields) => void logged.push(fields) },
    monotonicMs: () => nowMs,
  });
  return `http://127.0.0.1:${await admin.listen("127.0.0.1", 0)}`;
}

async function readyz(url: string): Promise<[number, unknown]> {
  const response = await fetch(`${url}/readyz`);
  return [response.status, await response.json()];
}

describe("the admin server", () => {
  test("reports each change of readiness within 0.5 s", async () => {
    let reasons: string[] = [];
    let checks = 0;
    const url = await startAdmin(async () => {
      checks++;
      return reasons;
    });
    expect(await readyz(url)).toEqual([200, { status: "ready" }]);
    reasons = ["NATS is not connected"];
    expect(await readyz(url)).toEqual([200, { status: "ready" }]);
    expect(checks).toBe(1);
    nowMs += 501;
    expect(await readyz(url)).toEqual([503, { status: "unready", reasons }]);
    reasons = [];
    nowMs += 501;
    expect(await readyz(url)).toEqual([200, { status: "ready" }]);
  });

  test("includes warnings in /readyz without changing the status", async () => {
    const reasons: string[] = [];
    const warnings = ["there is no project"];
    const url = await startAdmin(
      async () => reasons,
      async () => warnings,
    );
    expect(await readyz(url)).toEqual([200, { status: "ready", warnings }]);
    reasons.push("NATS is not connected");
    nowMs += 501;
    expect(await readyz(url)).toEqual([503, { status: "unready", reasons, warnings }]);
  });

  test("reports a failing or hanging readiness check as a reason", async () => {
    let url = await startAdmin(() => Promise.reject(new Error("a secret of the code")));
    expect(await readyz(url)).toEqual([503, { status: "unready", reasons: ["The check failed"] }]);
    expect(logged).toHaveLength(1);
    await admin?.close();
    let checks = 0;
    url = await startAdmin(() => {
      checks++;
      return new Promise(() => {});
    });
    const startedMs = performance.now();
    const answers = await Promise.all([readyz(url), readyz(url)]);
    for (const answer of answers) {
      expect(answer).toEqual([
        503,
        { status: "unready", reasons: ["The check took longer than 1500 ms"] },
      ]);
    }
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(checks).toBe(1);
  });

  test("serves /livez and /metrics while the gateway is not ready", async () => {
    const url = await startAdmin(async () => ["NATS is not connected"]);
    const live = await fetch(`${url}/livez`);
    expect([live.status, await live.json()]).toEqual([200, { status: "alive" }]);
    const metrics = await fetch(`${url}/metrics?x=1`);
    expect([metrics.status, metrics.headers.get("content-type"), await metrics.text()]).toEqual([
      200,
      "text/plain; version=0.0.4",
      "penstock_x 1\n",
    ]);
  });

  test("returns 404 for other paths and 405 for other methods", async () => {
    const url = await startAdmin(async () => []);
    expect((await fetch(`${url}/constructor`)).status).toBe(404);
    const posted = await fetch(`${url}/metrics`, { method: "POST", body: "x" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    expect((await fetch(`${url}/livez`, { method: "HEAD" })).status).toBe(200);
  });

  test("rejects a port that is already in use", async () => {
    const url = await startAdmin(async () => []);
    const second = new AdminServer({
      access: new PortAccess({ admin: [], read: [] }),
      metrics: { contentType: "", text: async () => "" },
      readiness: async () => [],
      log: { error: () => {} },
      monotonicMs: () => 0,
    });
    await expect(second.listen("127.0.0.1", Number(new URL(url).port))).rejects.toThrow(
      "the port is taken",
    );
  });

  test("reports unready during a drain even if a check returns ready", async () => {
    const check = Promise.withResolvers<string[]>();
    let draining = false;
    let checks = 0;
    const url = await startAdmin(async () => {
      if (draining) return ["shutting down"];
      return ++checks === 1 ? [] : await check.promise;
    });
    const unready = [503, { status: "unready", reasons: ["shutting down"] }];
    expect(await readyz(url)).toEqual([200, { status: "ready" }]);
    draining = true;
    admin?.readinessChanged();
    expect(await readyz(url)).toEqual(unready);

    draining = false;
    nowMs += 501;
    const asked = readyz(url);
    await expect.poll(() => checks).toBe(2);
    draining = true;
    admin?.readinessChanged();
    check.resolve([]);
    expect(await asked).toEqual(unready);
  });
});
