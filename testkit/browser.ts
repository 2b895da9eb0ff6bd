// A real Chromium, for the pages that tests look at.

import { type Browser, chromium } from "playwright-core";

// As root without a sandbox, and without what Chromium asks of its maker's servers.
const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["PENSTOCK_TEST_CHROMIUM"] ?? "chromium",
    args: flags,
  });
}
