// The live page is one page with nothing from elsewhere, that runs its own script and no other;
// names that a page elsewhere could point at us are refused, so are requests that come from such a
// page, and viewers beyond a number. What events hold is never part of the page.

import { createHash } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLoopback, isOwnHost } from "../../../src/admin/live/host.ts";
import { startTestGateway, type TestGateway, until } from "../../../testkit/gateway.ts";
import { watch } from "./live-kit.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ env: { PENSTOCK_ADMIN_HOST: "localhost" } });
});
afterAll(() => gateway.stop());

describe("only its own page may read it", () => {
  test("the page, and a policy that lets its own text run", async () => {
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
    for (const [kind, tag] of [
      ["script-src", /<script type="module">([\s\S]*?)<\/script>/g],
      ["style-src", /<style>([\s\S]*?)<\/style>/g],
    ] as const) {
      const texts = [...html.matchAll(tag)].map((match) => match[1] ?? "");
      expect(texts).toHaveLength(1);
      expect(texts[0]?.length).toBeGreaterThan(1_000);
      expect(policy).toContain(
        `${kind} 'sha256-${createHash("sha256")
          .update(texts[0] ?? "")
          .digest("base64")}'`,
      );
    }
    // Text becomes text nodes, and nothing is fetched.
    expect(html).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\son\w+=|\sstyle=/,
    );
    expect(html).not.toMatch(/(?:src|href)="(?!metrics"|readyz"|data:)|^import |@import|url\(/m);
    const head = await fetch(`${gateway.adminUrl}/`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await fetch(`${gateway.adminUrl}/`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${gateway.adminUrl}/page.js`)).status).toBe(404);
  });

  test("a hostile event comes as JSON text, and the page stays as it is", async () => {
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
  ])("Host %s: %i", async (host, status) => {
    expect(await statusOf("/", { Host: host })).toBe(status);
    expect(await statusOf("/live", { Host: host })).toBe(status);
    expect(await statusOf("/livez", { Host: host })).toBe(200);
  });

  test("the name that was set is its own", () => {
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

  test("pages elsewhere, ids that are none, and the seventeenth are refused", async () => {
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
