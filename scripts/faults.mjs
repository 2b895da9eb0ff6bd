// Runs the fault scenarios. Refuses to run without the addons, because users run with them.

import { runBuiltTool } from "./lib/built-tool.mjs";

process.exitCode = runBuiltTool("test/faults/run.ts");
