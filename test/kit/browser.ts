import { type Browser, chromium } from "playwright-core";

// Flags of Chromium. Its sandbox is off, because it does not start as root with a sandbox. Most
// other flags turn off requests to the vendor's servers.
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
