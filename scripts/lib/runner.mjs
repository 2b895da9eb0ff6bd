// Runs the programs of set-up, one at a time, so that none outlives it: each has a process group of
// its own, gets the signals that set-up gets, and is gone before set-up goes on. Its group is told
// to the lock, for the set-up after one that was killed.

import { spawn } from "node:child_process";
import { isGroupAlive, signalGroup } from "./processes.mjs";
import { root, SetupError } from "./project.mjs";

/** How long a program has to end after a signal before it is killed. */
const graceMs = 10_000;
const pollMs = 20;

/** `noteGroup` is called with the process group that runs, and with undefined when it ended. */
export function createRunner({ noteGroup }) {
  let group;
  let interruptedBy;
  let isStopping = false;

  function stop(signal) {
    if (group === undefined) return;
    isStopping = true;
    const stopped = group;
    signalGroup(stopped, signal);
    setTimeout(() => {
      if (group === stopped) signalGroup(stopped, "SIGKILL");
    }, graceMs).unref();
  }

  function interrupt(signal) {
    interruptedBy ??= signal;
    stop(signal);
  }

  function throwIfInterrupted() {
    if (interruptedBy !== undefined) throw new SetupError(`interrupted by ${interruptedBy}`);
  }

  /**
   * Answers whether the program ended well and all it said. Throws a SetupError once set-up is
   * interrupted.
   */
  async function run(program, args, { cwd = root, env = process.env, timeoutMs } = {}) {
    throwIfInterrupted();
    const child = spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    if (child.pid !== undefined) {
      group = child.pid;
      noteGroup(group);
    }
    child.once("exit", () => {
      // What a shell started in the background ignores SIGINT, and nobody is left to end it.
      if (isStopping) signalGroup(group, "SIGTERM");
    });
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(() => stop("SIGTERM"), timeoutMs);
    const { ok, said } = await resultOf(child);
    clearTimeout(timer);
    while (isStopping && isGroupAlive(group)) await new Promise((done) => setTimeout(done, pollMs));
    if (group !== undefined) noteGroup(undefined);
    group = undefined;
    isStopping = false;
    throwIfInterrupted();
    return { ok, said };
  }

  return { run, interrupt, throwIfInterrupted, interruptedBy: () => interruptedBy };
}

function resultOf(child) {
  return new Promise((done) => {
    let out = "";
    let errors = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      out += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      errors += text;
    });
    child.once("error", (error) => done({ ok: false, said: `${error.message}\n` }));
    child.once("close", (code) => done({ ok: code === 0, said: out + errors }));
  });
}
