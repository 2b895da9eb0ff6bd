// Runs the built penstock on the pinned Node.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { nodeFlagsOf } from "./lib/node-flags.mjs";
import { runOnPinnedNode } from "./lib/pinned-node.mjs";
import { root } from "./lib/project.mjs";

const main = join(root, "dist", "main.js");
const args = process.argv.slice(2);
if (existsSync(main)) runOnPinnedNode("penstock", [...nodeFlagsOf(args[0]), main, ...args]);
else {
  process.stderr.write(`Penstock is not built: run \`npm run setup\` in ${root} first\n`);
  process.exitCode = 1;
}
