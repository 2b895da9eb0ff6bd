// Takes the pictures of the live page in docs/images. Needs what `npm run setup -- --tools`
// installs, and a Chromium: node test/e2e/browser/screenshot.mjs

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { chromium } from "playwright-core";
import { findOnPath } from "../../../scripts/lib/prerequisites.mjs";
import { root, runtimeNode } from "../../../scripts/lib/project.mjs";

const flags =
  "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync";
const dataDir = mkdtempSync(join(tmpdir(), "penstock-screenshot-"));
const ports = { PENSTOCK_PORT: "0", PENSTOCK_ADMIN_PORT: "0", PENSTOCK_EFFECTS_PORT: "0" };
const env = { ...process.env, ...ports, PENSTOCK_DATA_DIR: dataDir };

function penstock(...args) {
  const stdio = ["ignore", "pipe", "ignore"];
  const child = spawn(runtimeNode(), [join(root, "dist", "main.js"), ...args], { env, stdio });
  const run = { child, out: "", ended: new Promise((resolve) => child.once("exit", resolve)) };
  child.stdout.on("data", (text) => (run.out += text));
  return run;
}

const any = (...list) => list[Math.floor(Math.random() * list.length)];
const web = { $lib: "web", $lib_version: "1.449.2", $browser: "Chrome", $os: "Mac OS X" };
const node = { $lib: "posthog-node", $lib_version: "5.70.0" };
const python = { $lib: "posthog-python", $lib_version: "7.91.1" };
const chrome = "Mozilla/5.0 (Macintosh) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36";
const agents = { shop: chrome, api: "posthog-node/5.70.0", app: "posthog-python/7.91.1" };
const events = {
  shop: () => [
    ["$pageview", { ...web, $current_url: `https://shop.example/${any("", "cart")}` }],
    ["$autocapture", { ...web, $event_type: "click", $el_text: "Add to cart" }],
    ["$identify", { ...web, $set: { email: "ada@example.com", plan: any("free", "pro") } }],
  ],
  api: () => [[any("order placed", "invoice paid"), { ...node, total: 49.9, currency: "EUR" }]],
  app: () => [
    ["search", { ...python, query: any("running shoes", "rain jacket"), results: 12 }],
    ["signed up", { ...python, plan: any("free", "pro") }],
  ],
};

async function send(address, project) {
  const batch = Array.from({ length: any(1, 1, 2, 3) }, () => {
    const [event, properties] = any(...events[project]());
    return { event, distinct_id: `user-${Math.floor(4_000 * Math.random() ** 2)}`, properties };
  });
  if (Math.random() < 0.01) batch.push({ event: "order placed", distinctId: "user-7" });
  const api_key = Math.random() < 0.003 ? "phc_of_staging" : `phc_${project}`;
  const headers = { "User-Agent": agents[project] };
  const body = JSON.stringify({ api_key, batch });
  await fetch(`${address}/batch/`, { method: "POST", headers, body });
}

const up = penstock("up");
try {
  while (!up.out.includes("Watch events")) await delay(100);
  const [, address] = /up at (\S+)/.exec(up.out);
  const [, admin] = /(http:\S+)\/metrics/.exec(up.out);
  const projects = Object.keys(events);
  for (const id of projects) await penstock("project", "add", id, "--key", `phc_${id}`).ended;
  const args = flags.split(" ").map((flag) => `--${flag}`);
  const browser = await chromium.launch({
    executablePath: process.env.PENSTOCK_TEST_CHROMIUM ?? findOnPath("chromium"),
    args,
  });
  const load = async (steps) => {
    for (let left = steps; left > 0; left--) {
      const requests = Array.from({ length: Math.round(2 + Math.sin(Date.now() / 4_000)) });
      await Promise.all([delay(50), ...requests.map(() => send(address, any(...projects)))]);
    }
  };
  await load(1_300);
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, colorScheme });
    await page.goto(admin);
    await load(120);
    await page.screenshot({ path: join(root, "docs", "images", `live-page-${colorScheme}.png`) });
  }
  await browser.close();
} finally {
  up.child.kill("SIGTERM");
  await up.ended;
  rmSync(dataDir, { recursive: true, force: true });
}
