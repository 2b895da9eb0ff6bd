// Runs a program of the project on the pinned Node, whatever Node started this: forwards arguments
// and signals, and ends with its exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { runtimeNode, SetupError } from "./project.mjs";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * `what` is the program's name in messages; `args` begin with its file. A SetupError of `check` or
 * of the pinned Node is printed and ends with 1.
 */
export function runOnPinnedNode(what, args, check = () => {}) {
  try {
    check();
    start(what, args);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

function start(what, args) {
  const child = spawn(runtimeNode(), [...args, ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`${what} does not start: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}
