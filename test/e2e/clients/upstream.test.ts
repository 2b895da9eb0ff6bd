import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PostHog } from "posthog-node";
import { afterAll, expect, test } from "vitest";
import { chromiums, readyMsMax, startStage, visit } from "./browser-kit.ts";
import { isReady, posthogJs } from "./pages.ts";

const upstream = await startUpstream();
const stage = startStage(() => ({ PENSTOCK_UPSTREAM_URL: upstream.url }));

test("posthog-node gets the upstream's flags even while the upstream is down", async () => {
  const project = await stage.gateway.project();
  const sdk = new PostHog(project.key, { host: stage.gateway.url });
  const isOn = (id: string) => sdk.isFeatureEnabled("new-checkout", id);
  expect(await isOn("ada")).toBe(true);
  upstream.isAway = true;
  expect(await isOn("ada")).toBe(true);
  expect(await isOn("bob")).toBeUndefined();
  sdk.capture({ distinctId: "ada", event: "bought" });
  await sdk.shutdown();
  const names = (await stage.gateway.events(project)).map(({ event }) => event);
  expect(names).toContain("bought");
  upstream.isAway = false;
});

test.each(chromiums())(
  "posthog-js gets the upstream's flags even while the upstream is down",
  async () => {
    const project = await stage.gateway.project();
    const page = posthogJs({ host: stage.gateway.url, key: project.key });
    stage.site.pages.set("/", page);
    const isOn = 'posthog.isFeatureEnabled("new-checkout", { send_event: false })';
    const opened = await visit(stage.browser!, stage.site.origin);
    await expect.poll(() => opened.page.evaluate(isReady), { timeout: readyMsMax }).toBe(true);
    await expect.poll(() => opened.page.evaluate(isOn), { timeout: readyMsMax }).toBe(true);
    await opened.idle();
    upstream.isAway = true;
    await opened.page.reload();
    await expect.poll(() => opened.page.evaluate(isReady), { timeout: readyMsMax }).toBe(true);
    await expect.poll(() => opened.page.evaluate(isOn), { timeout: readyMsMax }).toBe(true);
    await opened.page.evaluate('posthog.capture("bought")');
    const names = async () => (await stage.gateway.events(project)).map(({ event }) => event);
    await expect.poll(names, { timeout: readyMsMax }).toContain("bought");
    upstream.isAway = false;
  },
);

interface Upstream {
  readonly url: string;
  isAway: boolean;
}

async function startUpstream(): Promise<Upstream> {
  const state = { url: "", isAway: false };
  const flag = { key: "new-checkout", enabled: true, variant: null };
  const known = { ...flag, reason: {}, metadata: { id: 1, version: 1 } };
  const config = { supportedCompression: ["gzip"], hasFeatureFlags: true, sessionRecording: false };
  const server = createServer((request, response) => {
    request.resume();
    const path = request.url ?? "";
    if (state.isAway) response.destroy();
    else if (path.startsWith("/flags"))
      response.end(
        JSON.stringify({ flags: { "new-checkout": known }, errorsWhileComputingFlags: false }),
      );
    else if (path.includes("/config")) {
      response.setHeader("cache-control", "public, max-age=300");
      const text = JSON.stringify(config);
      const key = path.split("/")[2];
      response.end(
        path.includes(".js")
          ? `(window._POSTHOG_REMOTE_CONFIG ??= {})["${key}"] = { config: ${text}, siteApps: [] };`
          : text,
      );
    } else response.writeHead(404).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterAll(() => void server.close().closeAllConnections());
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
}
