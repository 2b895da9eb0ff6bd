import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startBrowser } from "../../kit/browser.ts";
import { startTestGateway } from "../../kit/gateway.ts";
import { ada, effectsHttp, readerOf } from "../../readers/effects/http/reader-kit.ts";
import { names, shot, visitPage } from "./live-page-kit.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser?.close());

const closeIsWithinReach = `(() => {
  const button = document.getElementById("person-close");
  const { x, y, width, height } = button.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2) === button;
})()`;

test("the live page leads from an event to its person by keyboard", async () => {
  const properties = '{"big":12345678901234567890.10,"plan":"<img src=x onerror=alert(1)>"}';
  const ids = Array.from({ length: 60 }, (_, n) => `device-${n}`);
  const of = { distinctIds: ids, distinctIdsTotal: 60, mainDistinctId: "<b>ada" };
  const person = { ...ada, ...of, propertiesJson: properties };
  const asked: string[] = [];
  const personByDistinctId = async (_: string, id: string) => {
    asked.push(id);
    return person;
  };
  const effects = new URL(await effectsHttp(readerOf({ personByDistinctId })));
  const gateway = await startTestGateway({ env: { PENSTOCK_EFFECTS_PORT: effects.port } });
  onTestFinished(() => gateway.stop());
  const event = { api_key: (await gateway.project()).key, event: "signed up", distinct_id: "ada" };
  await gateway.post("/capture/", event);
  const viewport = { width: 320, height: 640 };
  const page = await visitPage(browser, {
    address: gateway.adminUrl,
    viewport,
    colorScheme: "dark",
  });
  await expect.poll(() => page.locator("#effects-rows").textContent()).toContain("People");
  await expect.poll(() => names(page)).toEqual(["signed up"]);
  await page.locator("#events summary").focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator(".who button").isVisible()).toBe(true);
  for (const key of ["Tab", "Enter"]) await page.keyboard.press(key);
  await expect.poll(() => page.locator("#person-facts").textContent()).toContain(ada.uuid);
  const shown = await page.locator("#person-properties").textContent();
  expect(shown).toContain('"big": 12345678901234567890.10,\n  "plan": "<img src=x');
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  expect(await page.locator("#person-facts").textContent()).toContain(
    "10:00:00.000Z (to the hour)",
  );
  await shot(page, "person");
  await page.evaluate("document.getElementById('person').scrollTo(0, 1e6)");
  expect(await page.evaluate(closeIsWithinReach)).toBe(true);
  await page.locator("#person-facts button").nth(1).press("Enter");
  await expect.poll(() => asked.at(-1)).toBe("device-0");
  await expect.poll(() => page.locator("#person-facts").textContent()).toContain(ada.uuid);
  await shot(page, "person-end");
  await page.keyboard.press("Escape");
  expect(await page.locator("#person").isVisible()).toBe(false);
  expect(await page.locator(".who button:focus").count()).toBe(1);
  await page.locator("#effects").scrollIntoViewIfNeeded();
  await shot(page, "effects");
});
