import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { isLoopback, isOwnHost } from "../../src/platform/base/own-host.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import { until } from "../kit/gateway.ts";
import { watch } from "./live-kit.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_ADMIN_HOST: "localhost" } });

describe("the live page", () => {
  test("is served with a policy that allows only its own files", async () => {
    const response = await fetch(`${gateway.adminUrl}/?project=x`);
    const html = await response.text();
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/html; charset=utf-8",
    ]);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("style-src 'self'");
    expect(html).not.toMatch(/<style|<script(?! type="module" src="page\/page\.js"><\/script>)/);
    const texts = [html];
    for (const [name, type] of [
      ["page.css", "text/css; charset=utf-8"],
      ["page.js", "text/javascript; charset=utf-8"],
      ["state.js", "text/javascript; charset=utf-8"],
      ["effects.js", "text/javascript; charset=utf-8"],
      ["json-text.js", "text/javascript; charset=utf-8"],
      ["rejected.js", "text/javascript; charset=utf-8"],
      ["text.js", "text/javascript; charset=utf-8"],
      ["source.js", "text/javascript; charset=utf-8"],
    ]) {
      const file = await fetch(`${gateway.adminUrl}/page/${name}`);
      expect([file.status, file.headers.get("content-type")]).toEqual([200, type]);
      expect(file.headers.get("x-content-type-options")).toBe("nosniff");
      expect(file.headers.get("cross-origin-resource-policy")).toBe("same-origin");
      texts.push(await file.text());
      expect(texts.at(-1)?.length).toBeGreaterThan(1_000);
      expect(await statusOf(`/page/${name}`, { Host: "evil.example:9464" })).toBe(403);
    }
    const own = String.raw`metrics"|readyz"|data:|page/page\.(?:css|js)"`;
    for (const text of texts) {
      expect(text).not.toMatch(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\son\w+=|\sstyle=/,
      );
      expect(text).not.toMatch(
        new RegExp(
          `(?:src|href)="(?!${own})|^import (?![^;]*"\\./(?:text|json-text|state|effects|rejected|source)\\.js";)|@import|url\\(`,
          "m",
        ),
      );
    }
    const head = await fetch(`${gateway.adminUrl}/`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await fetch(`${gateway.adminUrl}/`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${gateway.adminUrl}/page.js`)).status).toBe(404);
  });

  test("receives a hostile event as JSON text", async () => {
    const before = await (await fetch(`${gateway.adminUrl}/`)).text();
    const hostile = `<img src=x onerror=alert(1)>\u2028</script><script>alert(2)</script>\n\nevent: state\ndata: {}\n\n`;
    const project = await gateway.project();
    const viewer = await watch(gateway.adminUrl);
    await gateway.post("/capture/", {
      api_key: project.key,
      event: hostile,
      distinct_id: hostile.slice(0, 100),
    });
    await until(() => viewer.events().length === 1);
    expect(viewer.events()[0]?.event).toBe(hostile);
    expect(viewer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(viewer.headers["x-content-type-options"]).toBe("nosniff");
    for (const state of viewer.said<object>("state")) expect(state).toHaveProperty("counts");
    expect(await (await fetch(`${gateway.adminUrl}/`)).text()).toBe(before);
  });

  test.each([
    ["127.0.0.1:9464", 200],
    ["[::1]:9464", 200],
    ["localhost:9464", 200],
    ["LOCALHOST", 200],
    ["evil.example:9464", 403],
    ["127.0.0.1.evil.example", 403],
    ["localhost.evil.example", 403],
    ["user@127.0.0.1", 403],
    ["[::1", 403],
  ])("answers a request with the Host %s with the status %i", async (host, status) => {
    expect(await statusOf("/", { Host: host })).toBe(status);
    expect(await statusOf("/live", { Host: host })).toBe(status);
    expect(await statusOf("/livez", { Host: host })).toBe(200);
  });

  test("accepts the configured host name", () => {
    expect(isOwnHost("watch.internal:9464", "watch.internal")).toBe(true);
    expect(isOwnHost("watch.internal:9464", "127.0.0.1")).toBe(false);
    expect(isOwnHost(undefined, "127.0.0.1")).toBe(false);
    expect(["127.0.0.1", "127.1.2.3", "::1", "localhost"].map(isLoopback)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(["0.0.0.0", "::", "10.0.0.1", "127.example"].map(isLoopback)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  test("rejects other origins, invalid project ids and the 17th viewer", async () => {
    expect(await statusOf("/live", { "Sec-Fetch-Site": "cross-site" })).toBe(403);
    for (const origin of ["http://evil.example", "http://127.0.0.1:1", "null"])
      expect(await statusOf("/live", { Host: "127.0.0.1:9464", Origin: origin })).toBe(403);
    expect(await statusOf("/live", { Host: "LOCALHOST:80", Origin: "http://localhost" })).toBe(200);
    expect(await statusOf("/live?project=a.b", {})).toBe(400);
    const viewers = await Promise.all(Array.from({ length: 16 }, () => watch(gateway.adminUrl)));
    expect(new Set(viewers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await statusOf("/live", {})).toBe(503);
    viewers[0]?.leave();
    await until(async () => (await statusOf("/live", {})) === 200);
  });
});

function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(gateway.adminUrl + path, { headers, agent: false }, (response) => {
      resolve(response.statusCode ?? 0);
      sent.destroy();
    });
    sent.on("error", reject).end();
  });
}
