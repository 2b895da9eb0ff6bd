// Runs the benchmarks on the pinned Node; arguments are passed on. Refuses without the native scanner: figures of the
// slow one would be taken for Penstock's.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { addonLog, isAddonCurrent } from "./lib/addon.mjs";
import { isDistCurrent } from "./lib/install.mjs";
import { root, runtimeNode } from "./lib/project.mjs";

function runBench() {
  if (!isAddonCurrent() || !isDistCurrent()) {
    process.stderr.write(
      `Penstock is not built: run \`npm run setup\`; log of the scanner's last build: ${addonLog}\n`,
    );
    return 1;
  }
  const args = ["--disable-warning=ExperimentalWarning", join(root, "bench", "main.ts"), ...process.argv.slice(2)];
  return spawnSync(runtimeNode(), args, { cwd: root, stdio: "inherit" }).status ?? 1;
}

process.exitCode = runBench();
