// Runs the load test on the pinned Node, whatever Node started this: passes arguments and signals on and ends as it ends.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { root, runtimeNode, SetupError } from "./lib/project.mjs";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"];

function run() {
  const load = join(root, "bench", "load", "load.ts");
  const child = spawn(runtimeNode(), [load, ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`the load test does not start: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

try {
  run();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
