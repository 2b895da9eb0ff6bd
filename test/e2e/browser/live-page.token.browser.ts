import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startBrowser } from "../../kit/browser.ts";
import { startTestGateway } from "../../kit/gateway.ts";
import { names, shot, visitPage } from "./live-page-kit.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser?.close());

test("the live page asks for the token again if it is wrong", async () => {
  const [admin, read] = ["an-admin-token-01", "a-read-only-token"];
  const gateway = await startTestGateway({
    env: { PENSTOCK_ADMIN_TOKEN: admin, PENSTOCK_READ_TOKEN: read },
  });
  onTestFinished(() => gateway.stop());
  const event = { api_key: (await gateway.project()).key, event: "signed up", distinct_id: "ada" };
  await gateway.post("/capture/", event);
  const page = await visitPage(browser, {
    address: gateway.adminUrl,
    status: "Connecting",
    expected: /status of 40[13]/,
  });
  const isAsking = () => page.locator("#token").isVisible();
  const enter = async (token: string) => {
    await expect.poll(isAsking).toBe(true);
    await page.locator("#token-text").fill(token);
    await page.keyboard.press("Enter");
  };
  await enter("another-token-0001");
  await expect.poll(() => page.locator("#token-note").textContent()).toContain("Invalid token");
  await shot(page, "token");
  await enter(read);
  await expect.poll(() => page.locator("#token-note").textContent()).toContain("read-only");
  await enter(admin);
  await expect.poll(() => names(page)).toEqual(["signed up"]);
  expect(await isAsking()).toBe(false);
  await page.reload();
  await expect.poll(() => names(page)).toEqual(["signed up"]);
  expect(await isAsking()).toBe(false);
});
