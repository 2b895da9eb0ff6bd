// Runs the built penstock on the pinned Node.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { nodeFlagsOf } from "./lib/node-flags.mjs";
import { runOnPinnedNode } from "./lib/pinned-node.mjs";
import { root, SetupError } from "./lib/project.mjs";

const main = join(root, "dist", "main.js");

runOnPinnedNode("penstock", [...nodeFlagsOf(process.argv[2]), main], () => {
  if (!existsSync(main))
    throw new SetupError(`Penstock is not built: run \`npm run setup\` in ${root} first`);
});
