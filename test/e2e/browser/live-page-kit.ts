import { mkdirSync } from "node:fs";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";

const screenshots = path.resolve(import.meta.dirname, "../../../.cache/live-page");
const wide = { width: 1_280, height: 860 };
export const narrow = { width: 375, height: 780 };
export const tablet = { width: 768, height: 1_024 };

export interface Look {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly colorScheme?: "light" | "dark";
  readonly query?: string;
  readonly status?: string;
  readonly address: string;
  readonly expected?: RegExp;
}

/** The test fails if the browser has reported a problem. */
export async function visitPage(browser: Browser, look: Look): Promise<Page> {
  const { viewport = wide, colorScheme = "light", query = "", status = "Ready" } = look;
  const { address, expected } = look;
  mkdirSync(screenshots, { recursive: true });
  const context = await browser.newContext({ viewport, colorScheme });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  onTestFinished(async () => {
    await context.close();
    expect(complaints.filter((complaint) => expected?.test(complaint) !== true)).toEqual([]);
  });
  await page.goto(`${address}/${query}`);
  await expect.poll(() => page.locator("#status").textContent()).toBe(status);
  return page;
}

export const names = (page: Page): Promise<string[]> =>
  page.locator("#events .name").allTextContents();
export const shot = (page: Page, name: string): Promise<Buffer> =>
  page.screenshot({ path: path.join(screenshots, `${name}.png`), animations: "disabled" });
