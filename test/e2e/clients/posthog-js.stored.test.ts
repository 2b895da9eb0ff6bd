import { beforeAll, describe, expect, test } from "vitest";
import { chromiums, readyMsMax, startStage, type Visit, visit } from "./browser-kit.ts";
import { expectTold, versionOf } from "./matrix-kit.ts";
import { bootstrap, isReady, posthogJs, snippet } from "./pages.ts";
import { expectStored } from "./stored-kit.ts";

const found = chromiums();
const stage = startStage();

beforeAll(() => void stage.site.pages.set("/elsewhere", ""));

async function open(path: string, body: string): Promise<Visit> {
  stage.site.pages.set(path, body);
  const opened = await visit(stage.browser!, `${stage.site.origin}${path}`);
  await expect.poll(() => opened.page.evaluate(isReady), { timeout: readyMsMax }).toBe(true);
  return opened;
}

describe("posthog-js", () => {
  test("is listed in docs/guides/sdks.md with the tested version", () => {
    expectTold("posthog-js", versionOf("posthog-js"));
  });

  test.each(found)("loses no event even while the page unloads", async () => {
    const project = await stage.gateway.project();
    const { page, heard, captured } = await open(
      "/",
      posthogJs({ host: stage.gateway.url, key: project.key }),
    );
    expect(await page.evaluate("posthog.compression")).toBe("gzip-js");
    await page.locator("#buy").click();
    await page.evaluate(`
    posthog.capture("signed up", { plan: "pro", ünï: ["😀", 1.5, null], nested: { deep: [{}] } });
    posthog.identify("user-1", { email: "a@example.com" }, { first_seen: "2026-01-01" });
    posthog.setPersonProperties({ seats: 5 }, { source: "ad" });
    posthog.group("company", "acme", { seats: 5 });
    posthog.alias("alias-1");
  `);
    await expect
      .poll(async () => (await stage.gateway.events(project)).length, { timeout: 30_000 })
      .toBe(7);
    await page.evaluate('posthog.capture("just before it was left")');
    await page.goto(`${stage.site.origin}/elsewhere`);
    const events = await captured();
    expect(events.map((event) => event.event)).toEqual([
      "$pageview",
      "$autocapture",
      "signed up",
      "$identify",
      "$set",
      "$groupidentify",
      "$create_alias",
      "just before it was left",
      "$pageleave",
    ]);
    const stored = await expectStored(stage.gateway, project, events);
    const named = (name: string) => stored.find((event) => event["event"] === name);
    expect(named("$identify")).toMatchObject({
      distinct_id: "user-1",
      $set: { email: "a@example.com" },
    });
    expect(named("$set")).toMatchObject({
      kind: "set",
      $set: { seats: 5 },
      $set_once: { source: "ad" },
    });
    expect(named("$autocapture")?.properties).toMatchObject({
      $event_type: "click",
      $el_text: "Buy now",
    });
    expect(named("$pageview")).toMatchObject({ person_profile: false });
    expect(heard).toContainEqual({ method: "POST", path: "/e/", status: 200 });
  });

  test.each(found)("sends JSON without compression and a form while the page unloads", async () => {
    const project = await stage.gateway.project();
    const options = { disable_compression: true };
    const { page, captured } = await open(
      "/plain",
      posthogJs({ host: stage.gateway.url, key: project.key, options }),
    );
    await expect
      .poll(async () => (await stage.gateway.events(project)).length, { timeout: 30_000 })
      .toBe(1);
    await page.evaluate('posthog.capture("in a form, with + and / and é")');
    await page.goto(`${stage.site.origin}/elsewhere`);
    const events = await captured();
    expect(events.map((event) => event.event)).toEqual([
      "$pageview",
      "in a form, with + and / and é",
      "$pageleave",
    ]);
    await expectStored(stage.gateway, project, events);
  });

  const loaders = { snippet, bootstrap };
  const byLoader = found.flatMap(() => Object.keys(loaders) as (keyof typeof loaders)[]);

  test.each(byLoader)(
    "works if the page's HTML %s loads posthog-js from the gateway",
    async (loader) => {
      const project = await stage.gateway.project();
      const { page, heard, captured } = await open(
        `/${loader}`,
        loaders[loader]({ host: stage.gateway.url, key: project.key }),
      );
      expect(heard).toContainEqual({ method: "GET", path: "/static/array.js", status: 200 });
      expect(await page.evaluate("posthog.version ?? posthog.LIB_VERSION")).toBe(
        versionOf("posthog-js"),
      );
      await page.locator("#buy").click();
      await page.goto(`${stage.site.origin}/elsewhere`);
      const events = await captured();
      const early = loader === "snippet" ? ["before the script is loaded"] : [];
      expect(events.map((event) => event.event).sort()).toEqual([
        "$autocapture",
        "$pageleave",
        "$pageview",
        ...early,
      ]);
      await expectStored(stage.gateway, project, events);
    },
  );
});
