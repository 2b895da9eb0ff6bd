import { type Browser, chromium } from "playwright-core";

// Chromium as root does not start with a sandbox. Most of the other flags turn off requests to its
// vendor's servers.
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
