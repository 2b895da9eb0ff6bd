// Runs the benchmarks. Refuses without the addons: figures of the slow ways would be taken for
// Penstock's.

import { runBuiltTool } from "./lib/built-tool.mjs";

process.exitCode = runBuiltTool("bench/main.ts", { needsDist: true });
