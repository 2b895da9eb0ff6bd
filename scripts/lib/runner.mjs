// Runs the programs of set-up, so that no program outlives it. Each program has its own process
// group, which gets the signals. Set-up continues after the group has ended.

import { spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import { noteGroups } from "./lock.mjs";
import { isGroupAlive, signalGroup } from "./processes.mjs";
import { root, SetupError, UsageError } from "./project.mjs";

/** Time from a signal until the program is killed, because npm does not end in time. */
const graceMs = 1_000;
const pollMs = 20;
const unhurriedNice = 10;

export function createRunner({ noteGroups }) {
  const running = new Set();
  let interruptedBy;
  let hasFailed = false;

  function stop(one, signal) {
    one.isStopping = true;
    signalGroup(one.group, signal);
    setTimeout(() => {
      if (running.has(one)) signalGroup(one.group, "SIGKILL");
    }, graceMs).unref();
  }

  function interrupt(signal) {
    interruptedBy ??= signal;
    for (const one of running) stop(one, signal);
  }

  function throwIfInterrupted() {
    if (interruptedBy !== undefined) throw new SetupError(`interrupted by ${interruptedBy}`);
    if (hasFailed) throw new SetupError("stopped, because a concurrent step failed");
  }

  function note() {
    noteGroups([...running].map(({ group }) => group));
  }

  /**
   * Returns whether the program succeeded, and its output. Throws a SetupError if set-up is
   * interrupted.
   */
  async function run(program, args, options = {}) {
    const { cwd = root, env = process.env, timeoutMs, unhurried = false } = options;
    throwIfInterrupted();
    const stdio = ["ignore", "pipe", "pipe"];
    const child = spawn(program, args, { cwd, env, detached: true, stdio });
    const result = resultOf(child);
    if (child.pid === undefined) return await result;
    const one = { group: child.pid, isStopping: false };
    running.add(one);
    note();
    if (unhurried) giveWay(child.pid);
    child.once("exit", () => {
      // Programs of a shell in the background ignore SIGINT.
      if (one.isStopping) signalGroup(one.group, "SIGTERM");
    });
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(() => stop(one, "SIGTERM"), timeoutMs);
    const { ok, said } = await result;
    clearTimeout(timer);
    while (one.isStopping && isGroupAlive(one.group))
      await new Promise((done) => setTimeout(done, pollMs));
    running.delete(one);
    note();
    throwIfInterrupted();
    return { ok, said };
  }

  /**
   * If a step fails, stops the other steps, and rejects with the first failure after all steps have
   * ended.
   */
  async function together(steps, atOnceMax = steps.length) {
    const open = [...steps];
    const failures = [];
    async function work() {
      try {
        for (let step = open.shift(); step !== undefined; step = open.shift()) {
          throwIfInterrupted();
          await step();
        }
      } catch (error) {
        failures.push(error);
        hasFailed = true;
        for (const one of running) stop(one, "SIGTERM");
      }
    }
    await Promise.all(Array.from({ length: Math.min(atOnceMax, steps.length) }, work));
    if (failures.length > 0) throw failures[0];
  }

  return { run, together, interrupt, throwIfInterrupted, interruptedBy: () => interruptedBy };
}

function giveWay(pid) {
  try {
    setPriority(pid, unhurriedNice);
  } catch {
    // The group has ended already.
  }
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

/** Runs `work` and sets the exit code. Signals interrupt it. `report` gets a SetupError's text. */
export async function runProgram(work, report) {
  const runner = createRunner({ noteGroups });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => runner.interrupt(signal));
  try {
    await work(runner);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    report(error.message);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
  // Handles a signal that arrived during the last step.
  await new Promise((done) => setImmediate(done));
  const signal = runner.interruptedBy();
  if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
}
