import { expect, onTestFinished, test } from "vitest";
import { AdminServer } from "../../../src/gateway/admin/server.ts";
import { PortAccess } from "../../../src/platform/base/port-access.ts";

const [admin, read] = ["an-admin-token-01", "a-read-only-token"];

async function serverWithTokens(reasons: string[] = []): Promise<string> {
  const server = new AdminServer({
    access: new PortAccess({ admin: [admin], read: [read] }),
    metrics: { contentType: "text/plain", text: async () => "penstock_x 1\n" },
    readiness: async () => reasons,
    warnings: async () => ["a warning"],
    instance: { nats: "nats://nats.internal:4222" },
    publicPort: () => 8_000,
    log: { error: () => {} },
    monotonicMs: () => performance.now(),
  });
  const port = await server.listen("127.0.0.1", 0);
  onTestFinished(() => server.close());
  return `http://127.0.0.1:${port}`;
}

async function ask(url: string, token?: string, method = "GET") {
  const headers: Record<string, string> =
    token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch(url, { method, headers });
  return { response, text: await response.text() };
}

test("the admin server rejects requests for metrics without a valid token", async () => {
  const url = await serverWithTokens();
  for (const token of [admin, read])
    expect((await ask(`${url}/metrics`, token)).text).toContain("x 1");
  for (const [token, code] of [
    [undefined, "missing_token"],
    ["another-token-0001", "invalid_token"],
  ] as const) {
    const { response, text } = await ask(`${url}/metrics`, token);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe('Bearer realm="penstock"');
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(JSON.parse(text)).toMatchObject({ status: 401, code, type: "about:blank" });
    expect(text).not.toContain(token ?? "penstock_x");
  }
});

test("the admin server returns 403 for POST with the read-only token", async () => {
  const url = await serverWithTokens();
  const statusOf = async (token?: string) =>
    (await ask(`${url}/metrics`, token, "POST")).response.status;
  expect(await statusOf()).toBe(401);
  expect(await statusOf(read)).toBe(403);
  expect(await statusOf(admin)).toBe(405);
});

test("the admin server returns only the status to probes without a token", async () => {
  const ready = await serverWithTokens();
  expect(JSON.parse((await ask(`${ready}/livez`)).text)).toEqual({ status: "alive" });
  expect(JSON.parse((await ask(`${ready}/readyz`)).text)).toEqual({ status: "ready" });
  const unready = await serverWithTokens(["nats.internal is away"]);
  const { response, text } = await ask(`${unready}/readyz`, "another-token-0001");
  expect([response.status, JSON.parse(text)]).toEqual([503, { status: "unready" }]);
  expect(JSON.parse((await ask(`${unready}/readyz`, read)).text)).toEqual({
    status: "unready",
    reasons: ["nats.internal is away"],
    warnings: ["a warning"],
  });
  expect((await ask(`${ready}/livez`, read)).text).toContain("nats.internal");
});
