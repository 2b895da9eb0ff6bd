// Runs the tests of the live page, which need a browser, on the pinned Node: not part of `npm
// test`, because a new machine has no browser and none is fetched. Uses the Chromium in
// PENSTOCK_TEST_CHROMIUM, else one on PATH.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { findChromium } from "./lib/chromium.mjs";
import { modulesDir, root, runtimeNode } from "./lib/project.mjs";

const chromium = findChromium();
if (chromium === undefined) {
  process.stderr.write(
    "test:browser: no Chromium on PATH: install one (Debian: apt-get install chromium), or name one in PENSTOCK_TEST_CHROMIUM\n",
  );
  process.exitCode = 1;
} else {
  const vitest = join(modulesDir, "vitest", "vitest.mjs");
  const args = [
    vitest,
    "run",
    "--config",
    join(root, "test", "e2e", "browser", "vitest.config.ts"),
    ...process.argv.slice(2),
  ];
  const env = { ...process.env, PENSTOCK_TEST_CHROMIUM: chromium };
  process.exitCode =
    spawnSync(runtimeNode(), args, { cwd: root, stdio: "inherit", env }).status ?? 1;
}
