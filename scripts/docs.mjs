// Writes the pages of docs/reference/ that are made from the code's own tables: npm run docs.

import { join } from "node:path";
import { runOnPinnedNode } from "./lib/pinned-node.mjs";
import { root } from "./lib/project.mjs";

const write = join(root, "scripts", "docs", "write.ts");
runOnPinnedNode("the generator of the documents", [write]);
