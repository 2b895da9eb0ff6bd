import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { PostHog } from "posthog-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { endpoints } from "../../../src/gateway/http/paths.ts";
import { sdkPaths } from "../../../src/gateway/http/sdk-requests.ts";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";
import { findProxies, nginxMain, startConfigured } from "../../kit/proxies.ts";

const page = readFileSync(
  path.resolve(import.meta.dirname, "../../../docs/guides/in-front-of-posthog.md"),
  "utf8",
);
const configs = [...page.matchAll(/```nginx\n([\s\S]*?)```/g)].map(([, config]) => config!);
const found = await findProxies();
const runs = "why" in found.nginx ? [] : (["split", "mirror"] as const);
if ("why" in found.nginx)
  process.stderr.write(`NOT RUN: nginx is not on this host: ${found.nginx.why}\n`);
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway({ env: { PENSTOCK_TRUSTED_PROXIES: "127.0.0.1/32" } });
});

afterAll(async () => {
  await gateway?.stop();
});

describe("the nginx configuration of the guide", () => {
  test("exists in two variants", () => {
    expect(configs.map((config) => config.includes("mirror /"))).toEqual([false, true]);
  });

  test("sends exactly the paths that accept events to Penstock", () => {
    for (const config of configs) {
      const [, pattern = ""] = /location ~ (\^\/\(\S+) \{/.exec(config) ?? [];
      const isSplitOff = (at: string) => new RegExp(pattern).test(at);
      for (const [at] of endpoints) expect([at, isSplitOff(at)]).toEqual([at, true]);
      for (const at of sdkPaths) expect([at, isSplitOff(at)]).toEqual([at, false]);
    }
  });

  test.each(runs)("sends events to Penstock and other requests to PostHog: %s", async (run) => {
    const project = await gateway.project();
    const { port: postHogPort, got } = await startPostHog();
    const config = configs[run === "split" ? 0 : 1]!;
    const port = await startConfigured("nginx", found, (own, folder) =>
      nginxMain(
        folder,
        config
          .replace("127.0.0.1:8000", `127.0.0.1:${gateway.port}`)
          .replace("127.0.0.1:9000", `127.0.0.1:${postHogPort}`)
          .replace("127.0.0.1:8080", `127.0.0.1:${own}`),
      ),
    );
    const host = `http://127.0.0.1:${port}`;
    const posthog = new PostHog(project.key, { host });
    for (let index = 0; index < 10; index++)
      posthog.capture({
        distinctId: "user-1",
        event: "counted",
        properties: { index, text: "x".repeat(10_000) },
      });
    await posthog.shutdown();
    const events = await gateway.events(project);
    expect(events.map((event) => event.properties["index"])).toEqual(
      Array.from({ length: 10 }, (_, index) => index),
    );
    for (const each of ["/e/", "/i/v0/e", "/capture?ip=1", "/i/v0/ai/batch/"]) {
      const event = JSON.stringify({ api_key: project.key, event: each, distinct_id: "user-1" });
      const answer = await fetch(host + each, { method: "POST", body: event });
      expect([each, answer.status, await answer.json()]).toEqual([
        each,
        200,
        { status: "Ok", accepted: 1, dropped: 0 },
      ]);
    }
    // Only Penstock serves this explanation of the error.
    const { type } = (await (await fetch(`${host}/e/`)).json()) as { type: string };
    expect(await (await fetch(new URL(type, `${host}/e/`))).text()).toContain('id="empty_body"');
    expect(
      await (await fetch(`${host}/flags/?v=2`, { method: "POST", body: "{}" })).json(),
    ).toEqual({
      status: "Ok",
    });
    expect(await (await fetch(`${host}/array/key/config`)).json()).toEqual({ status: "Ok" });
    const paths = ["POST /flags/?v=2", "GET /array/key/config"];
    const copies = [
      "POST /batch/",
      "POST /e/",
      "POST /i/v0/e",
      "POST /capture?ip=1",
      "POST /i/v0/ai/batch/",
      "GET /e/",
    ];
    const expected = run === "split" ? paths : [...copies, ...paths];
    await expect
      .poll(() => got.map(({ method, url }) => `${method} ${url}`).sort())
      .toEqual(expected.sort());
    const copy = got.find(({ method, url }) => method === "POST" && url === "/e/");
    if (run === "mirror") expect(copy?.body.toString()).toContain('"event":"/e/"');
  });
});

interface Got {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer;
}

async function startPostHog(): Promise<{ port: number; got: Got[] }> {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      got.push({
        method: request.method ?? "",
        url: request.url ?? "",
        body: Buffer.concat(chunks),
      });
      response.setHeader("Content-Type", "application/json");
      response.end('{"status":"Ok"}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, got };
}
