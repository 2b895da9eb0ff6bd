import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PostHog } from "posthog-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { chromiums, readyMsMax, startStage, visit } from "./browser-kit.ts";
import { isReady, posthogJs } from "./pages.ts";

const found = chromiums();
const stage = startStage();

describe("without flags in the gateway", () => {
  test("posthog-node gets all flags as off", async () => {
    const { key } = await stage.gateway.project();
    const sdk = new PostHog(key, {
      host: stage.gateway.url,
      personalApiKey: "phx_none",
      enableLocalEvaluation: false,
    });
    const errors: unknown[] = [];
    sdk.on("error", (error: unknown) => errors.push(error));
    const flags = await sdk.evaluateFlags("user-1");
    expect([flags.isEnabled("new-checkout"), flags.getFlag("new-checkout"), flags.keys]).toEqual([
      false,
      undefined,
      [],
    ]);
    expect(await sdk.getRemoteConfigPayload("settings")).toBeNull();
    await sdk.shutdown();
    expect(errors).toEqual([]);
  });

  test.each(found)("posthog-js gets the flags of a separately configured host", async () => {
    const { key } = await stage.gateway.project();
    const flags = await startFlags();
    const heard = "window.flagsHeard = 0; posthog.onFeatureFlags(() => { window.flagsHeard++; });";
    const page = posthogJs({
      host: stage.gateway.url,
      key,
      options: { flags_api_host: flags.url },
    });
    stage.site.pages.set("/", page.replace("</script>", `${heard}</script>`));
    const opened = await visit(stage.browser!, stage.site.origin);
    await expect.poll(() => opened.page.evaluate(isReady), { timeout: readyMsMax }).toBe(true);
    const isOn = () =>
      opened.page.evaluate('posthog.isFeatureEnabled("new-checkout", { send_event: false })');
    expect([await isOn(), flags.asked(), await opened.page.evaluate("window.flagsHeard")]).toEqual([
      undefined,
      0,
      0,
    ]);
    expect(await opened.page.evaluate("posthog.sessionRecordingStarted()")).toBe(false);
    await opened.page.evaluate("posthog.reloadFeatureFlags()");
    await expect.poll(isOn, { timeout: readyMsMax }).toBe(true);
    expect(flags.asked()).toBe(1);
  });
});

async function startFlags(): Promise<{ url: string; asked(): number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    response.setHeader("Access-Control-Allow-Origin", request.headers.origin ?? "*");
    response.setHeader("Access-Control-Allow-Credentials", "true");
    response.setHeader("Access-Control-Allow-Headers", "content-type");
    if (request.method === "POST") asked++;
    const flag = {
      key: "new-checkout",
      enabled: true,
      variant: null,
      reason: {},
      metadata: { id: 1, version: 1 },
    };
    response.end(
      JSON.stringify({ flags: { "new-checkout": flag }, errorsWhileComputingFlags: false }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}
