// Runs the fault scenarios on the pinned Node; arguments are passed on. Refuses without the addons:
// what is attacked would not be what users run.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { addonsNotBuilt } from "./lib/addon.mjs";
import { root, runtimeNode } from "./lib/project.mjs";

function runFaults() {
  const notBuilt = addonsNotBuilt();
  if (notBuilt.length > 0) {
    process.stderr.write("Penstock is not built: run `npm run setup`\n");
    for (const { name, log } of notBuilt)
      process.stderr.write(`log of the ${name}'s last build: ${log}\n`);
    return 1;
  }
  const args = [
    "--disable-warning=ExperimentalWarning",
    join(root, "tools", "faults", "run.ts"),
    ...process.argv.slice(2),
  ];
  return spawnSync(runtimeNode(), args, { cwd: root, stdio: "inherit" }).status ?? 1;
}

process.exitCode = runFaults();
