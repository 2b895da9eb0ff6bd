// Runs the benchmarks on the pinned Node; arguments are passed on. Refuses without the addons:
// figures of the slow ways would be taken for Penstock's.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { addonsNotBuilt } from "./lib/addon.mjs";
import { isDistCurrent } from "./lib/install.mjs";
import { root, runtimeNode } from "./lib/project.mjs";

function runBench() {
  const notBuilt = addonsNotBuilt();
  if (notBuilt.length > 0 || !isDistCurrent()) {
    process.stderr.write("Penstock is not built: run `npm run setup`\n");
    for (const { name, log } of notBuilt)
      process.stderr.write(`log of the ${name}'s last build: ${log}\n`);
    return 1;
  }
  const args = [
    "--disable-warning=ExperimentalWarning",
    join(root, "tools", "bench", "main.ts"),
    ...process.argv.slice(2),
  ];
  return spawnSync(runtimeNode(), args, { cwd: root, stdio: "inherit" }).status ?? 1;
}

process.exitCode = runBench();
