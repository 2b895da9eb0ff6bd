// Runs a tool on the pinned Node: node scripts/tool.mjs FILE [ARGUMENT…]. Forwards signals, and
// ends with its exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { root, runtimeNode, SetupError } from "./lib/project.mjs";

const [file, ...args] = process.argv.slice(2);

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}

try {
  const flags = ["--disable-warning=ExperimentalWarning"];
  const child = spawn(runtimeNode(), [...flags, join(root, file), ...args], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`${file} does not start: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  fail(error.message);
}
