// A visit fails on any message on the browser's console. Writes screenshots to .cache/live-page.

import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startBrowser } from "../../kit/browser.ts";
import { startTestGateway, type TestGateway, type TestProject } from "../../kit/gateway.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { runCommand } from "../../kit/run-command.ts";
import { type Look, names, narrow, shot, tablet, visitPage } from "./live-page-kit.ts";

let browser: Browser;
let gateway: TestGateway;
let alpha: TestProject;
let beta: TestProject;

beforeAll(async () => {
  browser = await startBrowser();
  gateway = await startTestGateway();
  alpha = await gateway.project();
  beta = await gateway.project();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
});

function visit(look: Partial<Look> = {}): Promise<Page> {
  return visitPage(browser, { address: gateway.adminUrl, ...look });
}

async function send(project: TestProject, ...events: string[]): Promise<void> {
  const batch = events.map((event) => ({
    event,
    distinct_id: "user-1",
    properties: { plan: "pro", html: event },
  }));
  expect((await gateway.post("/batch/", { api_key: project.key, batch })).status).toBe(200);
}

test("the live page shows a curl command before the first event", async () => {
  const page = await visit();
  await expect.poll(() => page.locator("#empty-title").textContent()).toContain("No events yet.");
  expect(await page.locator("#curl").textContent()).toContain(
    `http://127.0.0.1:${gateway.port}/capture/`,
  );
  await shot(page, "empty");
  await shot(await visit({ colorScheme: "dark" }), "empty-dark");
  await send(alpha, "hello");
  await expect.poll(() => names(page)).toEqual(["hello"]);
  expect(await page.locator("#empty").isVisible()).toBe(false);
  await expect.poll(() => page.locator("#stored-total").textContent()).toBe("1 total");
  await expect
    .poll(() => page.locator("#outcomes tbody td").allTextContents())
    .toEqual(["stored", "1", expect.any(String)]);
  await expect.poll(() => page.locator("#nats").textContent()).toContain("connected to");
});

test("the live page filters by project with the keyboard", async () => {
  const page = await visit();
  await page.locator("#project").focus();
  await page.keyboard.type(beta.id);
  await page.keyboard.press("Enter");
  await send(alpha, "of alpha");
  await send(beta, "of beta");
  await expect.poll(() => names(page)).toEqual(["of beta"]);
  expect(new URL(page.url()).search).toBe(`?project=${beta.id}`);
  const second = await visit({ query: `?project=${beta.id}` });
  await expect.poll(() => names(second)).toEqual(["of beta"]);
});

test("the live page sorts events of both streams by time of receipt", async () => {
  const project = await gateway.project();
  const sendTo = async (event: string, historical_migration: boolean) => {
    const batch = [{ event, distinct_id: "user-1" }];
    expect(
      (await gateway.post("/batch/", { api_key: project.key, historical_migration, batch })).status,
    ).toBe(200);
  };
  const received = ["old one", "live one", "old two", "live two"];
  for (const event of received) await sendTo(event, event.startsWith("old"));
  const page = await visit();
  const own = async () =>
    (await names(page))
      .map((name) => name.replace("historical", ""))
      .filter((name) => received.includes(name));
  await expect.poll(own).toEqual(received.toReversed());
});

test("the live page reports a missing project", async () => {
  const page = await visit({ query: "?project=nosuch" });
  await expect
    .poll(() => page.locator("#empty-title").textContent())
    .toContain("The project nosuch does not exist yet");
  expect(await page.locator("#of-all").isVisible()).toBe(true);
  await page.locator("#project").fill("");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator("#of-all").isVisible()).toBe(false);
});

test("the live page adds no events while paused", async () => {
  const page = await visit();
  await send(alpha, "first");
  await expect.poll(async () => (await names(page))[0]).toBe("first");
  await page.locator("#events summary").first().focus();
  await page.keyboard.press("Enter");
  await expect
    .poll(() => page.locator("#events pre").first().textContent())
    .toContain('"plan": "pro"');
  expect(await page.locator("#pause").getAttribute("aria-pressed")).toBe("true");
  await send(alpha, "while paused");
  await expect.poll(() => page.locator("#pause").textContent()).toBe("Resume (1 new)");
  expect(await names(page)).not.toContain("while paused");
  await page.locator("#pause").click();
  await expect.poll(async () => (await names(page))[0]).toBe("while paused");
});

test("the live page shows a hostile event as text", async () => {
  const page = await visit();
  const hostile = `<img src=x onerror="alert(1)"></script><script>alert(2)</script>`;
  await send(alpha, hostile);
  await expect.poll(() => names(page)).toContain(hostile);
  await page.locator("#events summary").first().click();
  await expect.poll(() => page.locator("#events pre").first().textContent()).toContain("onerror");
  expect(await page.locator("#events img, #events script").count()).toBe(0);
});

test("the live page shows right-to-left overrides as JSON escapes", async () => {
  const page = await visit();
  await send(alpha, "paid \u202e001\u2066 \u061c");
  await expect.poll(() => names(page)).toContain("paid \\u202e001\\u2066 \\u061c");
  await page.locator("#events summary").first().click();
  await expect
    .poll(() => page.locator("#events pre").first().textContent())
    .toContain('"event": "paid \\u202e001\\u2066 \\u061c",\n');
});

test("the live page shows the gateway's error for an invalid project id", async () => {
  const page = await visit({ expected: /status of 400/ });
  await page.goto(`${gateway.adminUrl}/?project=a.b`);
  await expect.poll(() => page.locator("#status").textContent()).toBe('Invalid project id: "a.b"');
  await page.locator("#project").fill("");
  await page.locator("#project").press("Enter");
  await expect.poll(() => page.locator("#status").textContent()).toBe("Ready");
});

test("the live page shows rejected requests as not stored", async () => {
  const page = await visit();
  await expect.poll(() => page.locator("#lost-total").textContent()).toMatch(/requests? rejected/);
  const before = Number.parseInt((await page.locator("#lost-total").textContent()) ?? "", 10);
  await fetch(`http://127.0.0.1:${gateway.port}/captur`, { method: "POST", body: "{}" });
  await expect
    .poll(async () => Number.parseInt((await page.locator("#lost-total").textContent()) ?? "", 10))
    .toBe(before + 1);
  await expect
    .poll(() => page.locator("#client-warnings li").first().textContent())
    .toContain("There is nothing at /captur");
});

test("the live page has one tab stop for all rows", async () => {
  const page = await visit();
  for (const name of ["row 1", "row 2", "row 3"]) await send(alpha, name);
  await expect
    .poll(async () => (await names(page)).slice(0, 3))
    .toEqual(["row 3", "row 2", "row 1"]);
  expect(await page.locator('#events summary[tabindex="0"]').count()).toBe(1);
  await page.locator("#events summary").first().focus();
  const focused = () => page.locator("#events summary:focus .name").textContent();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  expect(await focused()).toBe("row 1");
  await page.keyboard.press("Home");
  expect(await focused()).toBe("row 3");
  await page.keyboard.press("Tab");
  expect(await page.locator("#events :focus").count()).toBe(0);
});

test("the live page shows stored events to a new visitor", async () => {
  const batch = Array.from({ length: 90 }, (_, number) => ({
    event: `old ${number}`,
    distinct_id: "u",
  }));
  const response = await gateway.post("/batch/", { api_key: beta.key, batch });
  expect(response.status).toBe(200);
  const page = await visit({ query: `?project=${beta.id}` });
  await expect.poll(async () => (await names(page)).length).toBeGreaterThan(0);
  await send(beta, "new");
  await expect.poll(async () => (await names(page))[0]).toBe("new");
  expect(await page.locator("#skipped").isVisible()).toBe(false);
});

test("the live page shows no event twice after a lost connection", async () => {
  const sockets = new Set<Socket>();
  const between = createServer((socket) => {
    const onward = connect(Number(new URL(gateway.adminUrl).port), "127.0.0.1");
    for (const each of [socket, onward])
      sockets.add(each.on("error", () => {}).on("close", () => sockets.delete(each)));
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void between.close());
  const { port } = between.address() as AddressInfo;
  const page = await visit({ address: `http://127.0.0.1:${port}`, expected: /ERR_/ });
  await send(alpha, "before it was lost");
  await expect.poll(async () => (await names(page))[0]).toBe("before it was lost");
  const shown = await names(page);
  for (const socket of sockets) socket.destroy();
  await expect
    .poll(() => page.locator("#status").textContent())
    .toBe("No connection to the gateway");
  expect(await page.locator("#stored-rate").textContent()).toBe("–");
  expect(await page.locator("#about").textContent()).toMatch(/^last contact at \d\d:\d\d:\d\d$/);
  await expect.poll(() => page.locator("#status").textContent()).toBe("Ready");
  await send(alpha, "after it was lost");
  await expect.poll(async () => (await names(page))[0]).toBe("after it was lost");
  expect(await names(page)).toEqual(["after it was lost", ...shown]);
});

test("the live page truncates no text when wide or narrow", async () => {
  const looks = [
    ["light", await visit()],
    ["dark", await visit({ colorScheme: "dark" })],
    ["narrow", await visit({ viewport: narrow })],
    ["tablet", await visit({ viewport: tablet })],
    ["desktop", await visit({ viewport: { width: 1_440, height: 900 } })],
    ["narrow-dark", await visit({ viewport: narrow, colorScheme: "dark" })],
  ] as const;
  let drawn = await looks[0][1].locator("#stored-total").textContent();
  for (let round = 0; round < 8; round++) {
    await send(
      round % 3 === 0 ? beta : alpha,
      "signed up",
      "$pageview",
      "checkout started",
      "$identify",
    );
    await gateway.post("/capture/", { api_key: "phc_wrong", event: "e" });
    await gateway.post("/batch/", {
      api_key: alpha.key,
      batch: [{ event: "survey sent", distinct_id: "u" }, {}, { event: "x", distinct_id: "u" }],
    });
    await expect.poll(() => looks[0][1].locator("#stored-total").textContent()).not.toBe(drawn);
    drawn = await looks[0][1].locator("#stored-total").textContent();
  }
  for (const [name, page] of looks) {
    await expect.poll(() => page.locator("#client-warnings li").count()).toBe(3);
    const isWhole =
      "(({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight)(document.getElementById('client-warnings'))";
    expect(await page.evaluate(isWhole), name).toBe(true);
    await expect
      .poll(() => page.locator("#stored-line .stroke").getAttribute("d"))
      .toMatch(/^M.*L/);
    await shot(page, name);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name).toBe(
      true,
    );
  }
  const [light, dark] = await Promise.all(
    looks
      .slice(0, 2)
      .map(([, page]) => page.evaluate("getComputedStyle(document.body).backgroundColor")),
  );
  expect([light, dark]).toEqual(["rgb(243, 245, 248)", "rgb(13, 17, 23)"]);
});

test("the live page shows the newest problems, and all on request", async () => {
  const page = await visit();
  for (const key of ["one", "two", "three", "four", "five"])
    await gateway.post("/capture/", { api_key: `${key}_wrong`, event: "e", distinct_id: "u" });
  const problems = page.locator("#client-warnings li");
  const all = page.locator("#all-client-warnings");
  await expect.poll(() => all.textContent()).toMatch(/^Show all \d+$/);
  expect(await problems.count()).toBe(3);
  await all.click();
  expect(await problems.count()).toBeGreaterThanOrEqual(5);
  expect(await all.getAttribute("aria-pressed")).toBe("true");
  await all.click();
  expect(await problems.count()).toBe(3);
});

test("the live page counts the events of rules", async () => {
  const page = await visit();
  const file = path.join(temporaryFolder(), "rules.yaml");
  writeFileSync(
    file,
    "rules: [{ name: no-spam, mode: observe, match: { event: spam }, drop: true }, { name: no-ads, match: { event: ad }, drop: true }]\n",
  );
  const applied = await runCommand({ PENSTOCK_NATS_URL: gateway.config.natsUrl! }, [
    "rules",
    "apply",
    alpha.id,
    file,
  ]);
  expect(applied.fault).toBeUndefined();
  await expect
    .poll(async () => {
      await send(alpha, "spam");
      return await page.locator("#rules tbody tr").allTextContents();
    })
    .toEqual([expect.stringContaining(`${alpha.id} no-spam: dropped (only observed)`)]);
  expect(await page.locator("#lost-total").textContent()).not.toContain("filtered");
  await send(alpha, "ad", "ad");
  await expect
    .poll(() => page.locator("#lost-total").textContent())
    .toMatch(/dropped, 2 filtered by rules$/);
  expect(await page.locator("#outcomes").textContent()).toContain("filtered: by a rule");
});

test("the live page scrolls a long list of events", async () => {
  const page = await visit({ viewport: { width: 1_440, height: 900 } });
  await send(alpha, ...Array.from({ length: 50 }, (_, number) => `one of many ${number}`));
  await expect.poll(async () => (await names(page)).length).toBeGreaterThanOrEqual(50);
  await shot(page, "many");
  const scrolls = "(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)";
  expect(await page.evaluate(`${scrolls}(document.getElementById("events"))`)).toBe(true);
  const short = await visit({ viewport: { width: 1_440, height: 900 }, query: "?event=alone" });
  await send(alpha, "alone");
  await expect.poll(() => names(short)).toEqual(["alone"]);
  await shot(short, "one");
  const bottomOf = async (selector: string): Promise<number> => {
    const box = await short.locator(selector).boundingBox();
    return (box?.y ?? 0) + (box?.height ?? 0);
  };
  expect((await bottomOf(".events")) - (await bottomOf("#events"))).toBeLessThan(20);
});

test("the live page shows the last minute's counts to a new visitor", async () => {
  // The gateway samples its counts every five seconds.
  await expect
    .poll(
      async () => {
        const page = await visit();
        const drawn = await page.locator("#stored-line .stroke").getAttribute("d");
        return drawn?.split("L").length ?? 0;
      },
      { timeout: 60_000 },
    )
    .toBeGreaterThan(5);
});

test("the live page filters events by name and distinct id", async () => {
  const page = await visit();
  await expect
    .poll(() =>
      page.evaluate("[...document.querySelectorAll('#projects option')].map((o) => o.value)"),
    )
    .toEqual(expect.arrayContaining([alpha.id, beta.id]));
  await page.locator("#event").fill("wanted");
  await page.locator("#event").press("Enter");
  await send(alpha, "unwanted", "wanted");
  await expect.poll(() => names(page)).toEqual(["wanted"]);
  expect(new URL(page.url()).search).toBe("?event=wanted");
  await page.locator("#event").fill("");
  await page.locator("#distinct-id").fill("only me");
  await page.locator("#distinct-id").press("Enter");
  await send(beta, "of user-1");
  await gateway.post("/capture/", { api_key: beta.key, event: "mine", distinct_id: "only me" });
  await expect.poll(() => names(page)).toEqual(["mine"]);
  expect(new URL(page.url()).search).toBe("?distinct_id=only+me");
});

test("the live page shows problems first on a narrow screen", async () => {
  const page = await visit({ viewport: narrow });
  await gateway.post("/capture/", { api_key: "phc_wrong", event: "e", distinct_id: "u" });
  const link = page.locator("#client-warnings a").first();
  await expect.poll(() => link.getAttribute("href")).toMatch(/\/docs\/errors#\w+$/);
  const href = (await link.getAttribute("href")) ?? "";
  const explained = await (await fetch(href)).text();
  expect(explained).toContain(`id="${new URL(href).hash.slice(1)}"`);
  const top = async (selector: string) => (await page.locator(selector).boundingBox())?.y ?? 0;
  expect(await top("#problems")).toBeLessThan(await top(".events"));
});

test("the live page reports a repeated request as already stored", async () => {
  const page = await visit();
  // A request of this size with uuids has its own frames, whose repetition is recognised.
  const event = { uuid: "018f0000-0000-7000-8000-000000000001", event: "again", distinct_id: "u" };
  const batch = [{ ...event, properties: { a: "a".repeat(600_000) } }];
  const body = { api_key: alpha.key, historical_migration: true, batch };
  for (const _ of ["first", "again"])
    expect((await gateway.post("/batch/", body)).status).toBe(200);
  await expect
    .poll(() => page.locator("#outcomes tbody td").allTextContents())
    .toContain("duplicate: already in the stream");
});

test("the live page reports that the store is unavailable", async () => {
  const page = await visit();
  await gateway.nats.kill();
  await expect
    .poll(() => page.locator("#status").textContent(), { timeout: 30_000 })
    .toBe("Not ready");
  expect(await page.locator("#trouble").isVisible()).toBe(true);
  await page.locator("#clear").click();
  expect(await page.locator("#empty-title").textContent()).toContain("Events cannot be stored now");
  await shot(page, "not-ready");
  await gateway.nats.restart();
  await expect.poll(() => page.locator("#status").textContent(), { timeout: 30_000 }).toBe("Ready");
  await send(alpha, "after the restart");
  await expect.poll(() => names(page), { timeout: 30_000 }).toContain("after the restart");
});
