import { PostHog } from "posthog-js-lite";
import { describe, expect, test, vi } from "vitest";
import { chromiums, readyMsMax, startStage, visit } from "./browser-kit.ts";
import { expectTold, versionOf } from "./matrix-kit.ts";
import { isReady, posthogJsLite } from "./pages.ts";
import { type Captured, expectStored } from "./stored-kit.ts";

const found = chromiums();
const stage = startStage();

const calls = `
  posthog.capture("signed up", { plan: "pro", ünï: ["😀", 1.5] });
  posthog.identify("user-1", { email: "a@example.com" });
  posthog.groupIdentify("company", "acme", { seats: 5 });
  posthog.alias("alias-1");
`;
const names = ["signed up", "$identify", "$groupidentify", "$create_alias"];

describe("posthog-js-lite", () => {
  test("is listed in docs/guides/sdks.md with the tested version", () => {
    expectTold("posthog-js-lite", versionOf("posthog-js-lite"));
  });

  test("sends events from Node with all captured fields", async () => {
    const project = await stage.gateway.project();
    const complained = vi.spyOn(console, "error");
    const captured: Captured[] = [];
    const posthog = new PostHog(project.key, { host: stage.gateway.url });
    posthog.on("*", (_type: string, message?: Captured) => {
      if (message?.uuid !== undefined)
        captured.push(JSON.parse(JSON.stringify(message)) as Captured);
    });
    posthog.capture("signed up", { plan: "pro", ünï: ["😀", 1.5] });
    posthog.identify("user-1", { email: "a@example.com" });
    posthog.groupIdentify("company", "acme", { seats: 5 });
    posthog.alias("alias-1");
    await posthog.shutdown();
    expect(captured.map((event) => event.event)).toEqual(names);
    await expectStored(stage.gateway, project, captured);
    expect(complained).not.toHaveBeenCalled();
    complained.mockRestore();
  });

  test.each(found)("sends events from another origin with all captured fields", async () => {
    const project = await stage.gateway.project();
    stage.site.pages.set("/", posthogJsLite({ host: stage.gateway.url, key: project.key }));
    const { page, captured } = await visit(stage.browser!, `${stage.site.origin}/`);
    await expect.poll(() => page.evaluate(isReady), { timeout: readyMsMax }).toBe(true);
    await page.evaluate(`${calls} posthog.flush()`);
    const events = await captured();
    expect(events.map((event) => event.event)).toEqual(names);
    await expectStored(stage.gateway, project, events);
  });
});
