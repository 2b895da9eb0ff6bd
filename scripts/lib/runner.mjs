// Runs the programs of set-up, so that none outlives it: each has its own process group, gets the
// signals that set-up gets, and ends before set-up continues. The lock records their groups, for
// the set-up after a killed one.

import { spawn } from "node:child_process";
import { setPriority } from "node:os";
import { isGroupAlive, signalGroup } from "./processes.mjs";
import { root, SetupError } from "./project.mjs";

/** How long a program has to end after a signal before it is killed: npm does not end in time. */
const graceMs = 1_000;
const pollMs = 20;
/** The `nice` value of a program that nothing else waits for. */
const unhurriedNice = 10;

/** `noteGroups` is called with the running process groups, each time one starts or has ended. */
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
   * Returns whether the program succeeded, and its output. Throws a SetupError once set-up is
   * interrupted. An `unhurried` one leaves the processor to the others.
   */
  async function run(program, args, options = {}) {
    const { cwd = root, env = process.env, timeoutMs, unhurried = false } = options;
    throwIfInterrupted();
    const stdio = ["ignore", "pipe", "pipe"];
    const child = spawn(program, args, { cwd, env, detached: true, stdio });
    const result = resultOf(child);
    // It could not be started.
    if (child.pid === undefined) return await result;
    const one = { group: child.pid, isStopping: false };
    running.add(one);
    note();
    if (unhurried) giveWay(child.pid);
    child.once("exit", () => {
      // Programs of a shell that was started in the background ignore SIGINT, and nothing else
      // would end them.
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
   * Runs the steps concurrently, up to a maximum number. If one fails, the programs of the others
   * are stopped; rejects with the first failure when all have ended.
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
    // It has ended already.
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
