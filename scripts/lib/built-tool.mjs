// Runs a tool that needs the built project, on the pinned Node; arguments are passed on.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { addonsNotBuilt } from "./addon.mjs";
import { isDistCurrent } from "./install.mjs";
import { root, runtimeNode } from "./project.mjs";

/**
 * `file` is below the root. Returns the exit code: 1 if an addon is not built or, if the tool needs
 * it, dist/ is outdated.
 */
export function runBuiltTool(file, { needsDist = false } = {}) {
  const notBuilt = addonsNotBuilt();
  if (notBuilt.length > 0 || (needsDist && !isDistCurrent())) {
    process.stderr.write("Penstock is not built: run `npm run setup`\n");
    for (const { name, log } of notBuilt)
      process.stderr.write(`log of the ${name}'s last build: ${log}\n`);
    return 1;
  }
  const flag = "--disable-warning=ExperimentalWarning";
  const args = [flag, join(root, file), ...process.argv.slice(2)];
  return spawnSync(runtimeNode(), args, { cwd: root, stdio: "inherit" }).status ?? 1;
}
