import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";
import { findProxies, nginxMain, proxyNames, startConfigured } from "../../kit/proxies.ts";

const page = readFileSync(
  path.resolve(import.meta.dirname, "../../../docs/guides/behind-a-proxy.md"),
  "utf8",
);
const found = await findProxies();
const runs = proxyNames.filter((name) => !("why" in found[name]));
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway({ env: { PENSTOCK_TRUSTED_PROXIES: "127.0.0.1/32" } });
});

afterAll(async () => {
  await gateway?.stop();
});

test.each(runs)(
  "%s, configured as in the guide, passes events, client addresses and preflights",
  async (name) => {
    const project = await gateway.project();
    const [, config = ""] = new RegExp(`\`\`\`${name}\n([^]*?)\`\`\``).exec(page) ?? [];
    expect(config).not.toBe("");
    const port = await startConfigured(name, found, (own, folder) => {
      const text = config
        .replace(/(?:bind :|listen )8080/, (word) => word.replace(/:?8080/, `127.0.0.1:${own}`))
        .replace("127.0.0.1:8000", `127.0.0.1:${gateway.port}`)
        .replace("port 9464", `port ${new URL(gateway.adminUrl).port}`);
      return name === "nginx" ? nginxMain(folder, text) : text;
    });
    const url = `http://127.0.0.1:${port}`;
    const send = (body: string, forwarded: string) =>
      fetch(`${url}/batch/`, {
        method: "POST",
        headers: { "X-Forwarded-For": forwarded, Origin: "https://shop.example" },
        body,
      });
    const batch = Array.from({ length: 100 }, (_, index) => ({
      event: "large",
      distinct_id: "user-1",
      properties: { index, text: "x".repeat(190_000) },
    }));
    const answer = await send(JSON.stringify({ api_key: project.key, batch }), "203.0.113.9");
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { status: "Ok", accepted: 100, dropped: 0 },
    ]);
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://shop.example");
    const events = await gateway.events(project);
    // HAProxy replaces the header of the client, and nginx appends to it. 127.0.0.1 is trusted
    // here.
    const address = name === "nginx" ? "203.0.113.9" : "127.0.0.1";
    expect(events.map((event) => event["ip"])).toEqual(batch.map(() => address));
    const preflight = await fetch(`${url}/e/`, {
      method: "OPTIONS",
      headers: { Origin: "https://shop.example", "Access-Control-Request-Method": "POST" },
    });
    expect([
      preflight.status,
      preflight.headers.get("access-control-allow-origin"),
      preflight.headers.get("access-control-max-age"),
    ]).toEqual([200, "https://shop.example", "86400"]);
  },
);
