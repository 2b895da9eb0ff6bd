// Runs the tests that need a browser, on the pinned Node: not part of `npm test`, because a fresh machine has no browser and none is
// fetched. Takes the Chromium that PENSTOCK_TEST_CHROMIUM names, else one on PATH.

import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { modulesDir, root, runtimeNode } from "./lib/project.mjs";

const names = ["chromium", "chromium-browser", "google-chrome"];

function findChromium() {
  const named = process.env.PENSTOCK_TEST_CHROMIUM ?? "";
  if (named !== "") return named;
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const chromium = findChromium();
if (chromium === undefined) {
  process.stderr.write(
    "test:browser: no Chromium on PATH: install one (Debian: apt-get install chromium), or name one in PENSTOCK_TEST_CHROMIUM\n",
  );
  process.exitCode = 1;
} else {
  const vitest = join(modulesDir, "vitest", "vitest.mjs");
  const args = [vitest, "run", "--config", join(root, "test", "browser", "vitest.config.ts"), ...process.argv.slice(2)];
  const env = { ...process.env, PENSTOCK_TEST_CHROMIUM: chromium };
  process.exitCode = spawnSync(runtimeNode(), args, { cwd: root, stdio: "inherit", env }).status ?? 1;
}
