// Runs a program on the pinned Node. Forwards signals, and ends with its exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { runtimeNode, SetupError } from "./project.mjs";

export function runOnPinnedNode(what, args) {
  const fail = (message) => {
    process.stderr.write(`${message}\n`);
    process.exitCode = 1;
  };
  let node;
  try {
    node = runtimeNode();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    fail(error.message);
    return;
  }
  const child = spawn(node, args, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`${what} does not start: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}
