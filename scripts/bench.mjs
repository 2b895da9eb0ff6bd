// Runs the benchmarks. Refuses to run without the addons, because the figures of the fallback code
// would be taken for Penstock's.

import { runBuiltTool } from "./lib/built-tool.mjs";

process.exitCode = runBuiltTool("bench/main.ts", { needsDist: true });
