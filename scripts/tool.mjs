// Runs a tool on the pinned Node: node scripts/tool.mjs FILE [ARGUMENT…]

import { join } from "node:path";
import { runOnPinnedNode } from "./lib/pinned-node.mjs";
import { root } from "./lib/project.mjs";

const [file, ...args] = process.argv.slice(2);
runOnPinnedNode(file, ["--disable-warning=ExperimentalWarning", join(root, file), ...args]);
