// Runs the load test on the pinned Node.

import { join } from "node:path";
import { runOnPinnedNode } from "./lib/pinned-node.mjs";
import { root } from "./lib/project.mjs";

runOnPinnedNode("the load test", [join(root, "bench", "load", "load.ts")]);
