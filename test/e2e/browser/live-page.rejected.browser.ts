import { connect } from "@nats-io/transport-node";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { applyRules } from "../../../src/gateway/projects/rules/versions.ts";
import { startBrowser } from "../../kit/browser.ts";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";
import { untilRejected } from "../../kit/rejected.ts";
import { shot, visitPage } from "./live-page-kit.ts";

let browser: Browser;
let gateway: TestGateway;

beforeAll(async () => {
  browser = await startBrowser();
  gateway = await startTestGateway();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("the live page lists rejected events with their reason and their text, by project", async () => {
  const [alpha, beta] = await gateway.projects(2);
  const html = "<img src=x onerror=alert(1)>";
  await gateway.post("/batch/", { api_key: alpha!.key, batch: [{ event: "order", html }] });
  await gateway.post("/batch/", { api_key: beta!.key, batch: [{ distinct_id: "u" }, 7] });
  await untilRejected(gateway, alpha!, 1);
  await untilRejected(gateway, beta!, 2);
  const page = await visitPage(browser, { address: gateway.adminUrl });
  expect(await page.locator("#rejected-panel").isVisible()).toBe(false);
  await page.locator("#list-rejected").click();
  await expect.poll(() => page.locator("#rejected li").count()).toBe(3);
  expect(await page.locator("#events").isVisible()).toBe(false);
  await page.locator("#project").fill(alpha!.id);
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator("#rejected li").count()).toBe(1);
  const row = page.locator("#rejected li");
  expect(await row.locator(".name").textContent()).toBe("orderno_distinct_id");
  await row.locator("summary").click();
  expect(await row.locator("pre").textContent()).toContain(html);
  expect(await row.locator(".who").textContent()).toMatch(
    /^no_distinct_id: The event is not stored: distinct_id is absent/,
  );
  await shot(page, "rejected");
  await page.locator("#list-stored").click();
  expect(await page.locator("#rejected-panel").isVisible()).toBe(false);
});

test("an open row of a rejected event stays open and focused if others are rejected", async () => {
  const [delta, epsilon] = await gateway.projects(2);
  await gateway.post("/batch/", { api_key: delta!.key, batch: [{ event: "first" }] });
  await untilRejected(gateway, delta!, 1);
  const expected = /Failed to load resource/;
  const page = await visitPage(browser, { address: gateway.adminUrl, expected });
  await page.locator("#list-rejected").click();
  expect(await page.locator("#events-title").textContent()).toBe("Rejected events");
  const row = page.locator("#rejected li", { hasText: delta!.id });
  await row.locator("summary").focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => row.locator("pre").isVisible()).toBe(true);
  const count = await page.locator("#rejected li").count();
  await gateway.post("/batch/", { api_key: epsilon!.key, batch: [{ event: "second" }] });
  await untilRejected(gateway, epsilon!, 1);
  await expect
    .poll(() => page.locator("#rejected li").count(), { timeout: 15_000 })
    .toBe(count + 1);
  expect(await row.locator("details").getAttribute("open")).toBe("");
  expect(await row.locator("summary:focus").count()).toBe(1);
  expect(await page.locator("#rejected li .name").first().textContent()).toContain("second");
  await page.locator("#distinct-id").fill("nobody");
  await page.keyboard.press("Enter");
  await expect
    .poll(() => page.locator("#rejected-note").textContent())
    .toContain("The distinct id does not filter this list.");
  const note = page.locator("#rejected-note");
  const path = "**/live/rejected*";
  await page.route(path, (route) => route.abort());
  await expect.poll(() => note.textContent()).toBe("No connection to the gateway");
  expect(await page.locator("#rejected li").count()).toBe(count + 1);
  await page.route(path, (route) => route.fulfill({ status: 403, body: "Events are hidden" }));
  await expect.poll(() => note.textContent()).toBe("Events are hidden");
  expect(await page.locator("#rejected li").count()).toBe(0);
});

test("a row of an event that a rule quarantined names the rule", async () => {
  const [zeta] = await gateway.projects(1);
  const connection = await connect({ servers: gateway.nats.url });
  const prefix = gateway.config.subjectPrefix;
  const text = "rules: [{ name: no-orders, match: { event: order }, quarantine: true }]";
  await applyRules(connection, { prefix, replicas: 1, id: zeta!.id, author: "me@here", text });
  await connection.close();
  const batch = [{ event: "order", distinct_id: "u" }];
  await expect
    .poll(async () => (await gateway.post("/batch/", { api_key: zeta!.key, batch })).json)
    .toMatchObject({ filtered: 1 });
  await untilRejected(gateway, zeta!, 1);
  const query = `?project=${zeta!.id}`;
  const page = await visitPage(browser, { address: gateway.adminUrl, query });
  await page.locator("#list-rejected").click();
  await page.locator("#rejected li summary").click();
  expect(await page.locator("#rejected li .who").textContent()).toBe(
    "rule no-orders: The rule of the project quarantined the event.",
  );
});

test("the list of rejected events stays at a reload, and is in the history", async () => {
  const [gamma] = await gateway.projects(1);
  await gateway.post("/batch/", { api_key: gamma!.key, batch: [{ event: "order" }] });
  await untilRejected(gateway, gamma!, 1);
  const query = `?project=${gamma!.id}`;
  const page = await visitPage(browser, { address: gateway.adminUrl, query });
  const panel = page.locator("#rejected-panel");
  await page.locator("#list-rejected").focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator("#rejected li").count()).toBe(1);
  expect(page.url()).toBe(`${gateway.adminUrl}/${query}#rejected`);
  await page.reload();
  await expect.poll(() => page.locator("#rejected li").count()).toBe(1);
  expect(await page.locator("#list-rejected").getAttribute("aria-pressed")).toBe("true");
  await page.goBack();
  await expect.poll(() => panel.isVisible()).toBe(false);
  await page.goForward();
  await expect.poll(() => panel.isVisible()).toBe(true);
  await page.locator("#project").fill("");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.url()).toBe(`${gateway.adminUrl}/#rejected`);
  expect(await panel.isVisible()).toBe(true);
});
