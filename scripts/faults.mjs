// Runs the fault scenarios. Refuses without the addons: what is attacked would not be what users
// run.

import { runBuiltTool } from "./lib/built-tool.mjs";

process.exitCode = runBuiltTool("test/faults/run.ts");
