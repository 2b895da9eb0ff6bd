// The effects beside the gateway of `up`: a process of its own, so that the two do not share a
// thread. This has both ends: what `up` keeps running, and the hidden command that runs there. The
// child ends with its parent, whichever way that ends: their channel closes.

import { type ChildProcess, fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { processPauses, restartLoop } from "../platform/base/retry.ts";
import type { Config } from "../platform/settings/config.ts";
import { serveEffects } from "./effects.ts";
import { besideCommand } from "./options.ts";

interface StartBeside {
  readonly type: "start";
  readonly config: Config;
}

export interface EffectsBeside {
  /** Ends the process when it has committed what it has in hand. */
  close(): Promise<void>;
}

/** A process that fails at every start must not fill the log. */
const pauses = { ...processPauses, pauseMsMax: 30_000 } as const;
/**
 * V8 collects earlier instead of growing its heap. After 20 s of single events of 100,000 people at
 * 40,000 a second the process has 220 MiB with these flags and the caches of `besideMemory`, and
 * 390 MiB with the small caches alone.
 */
const smallHeap = ["--optimize-for-size", "--max-semi-space-size=2"];
/** A commit and the closing of the database take less, or something hangs. */
const closeGraceMs = 10_000;

/** Returns at once: nothing of the gateway waits for the effects. */
export function startBeside(
  config: Config,
  { env, mainFile, stop }: CommandContext,
  log: Log,
): EffectsBeside {
  const closing = new AbortController();
  let child: ChildProcess | undefined;
  let end: object = {};
  const run = async (): Promise<void> => {
    // Its settings come over the channel: secrets among them must not stand in its environment too.
    const own = Object.entries(env).filter(([name]) => !name.startsWith("PENSTOCK_"));
    const started = fork(mainFile, ["effects", besideCommand], {
      env: Object.fromEntries(own),
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      serialization: "advanced",
      execArgv: smallHeap,
    });
    child = started;
    lowerPriority(started.pid);
    log.info({ pid: started.pid }, "effects process started");
    const ended = endOf(started);
    if (started.connected) started.send({ type: "start", config } satisfies StartBeside, () => {});
    end = await ended;
    child = undefined;
  };
  const kept = restartLoop(run, {
    signal: AbortSignal.any([closing.signal, stop]),
    ...pauses,
    ended: (waitMs, error) =>
      log.error(
        { ...(error === undefined ? end : { err: error }), waitMs },
        "the effects process ended: starting another in its place",
      ),
  });
  return {
    async close() {
      closing.abort();
      const last = child;
      if (last?.connected) last.disconnect();
      const late = setTimeout(() => last?.kill("SIGKILL"), closeGraceMs);
      await kept;
      clearTimeout(late);
    },
  };
}

/** The child's end: runs until it is told to stop, or its parent is gone. */
export async function runBeside(context: CommandContext): Promise<void> {
  const { channel, stop } = context;
  if (channel.send === undefined) {
    throw new CommandError(
      "`effects beside` is what `up` runs: start `penstock effects` instead",
      usageExitCode,
    );
  }
  const left = new AbortController();
  const started = Promise.withResolvers<StartBeside | undefined>();
  channel.on("message", (message) => started.resolve(message as StartBeside));
  channel.on("disconnect", () => {
    left.abort();
    started.resolve(undefined);
  });
  stop.addEventListener("abort", () => started.resolve(undefined), { once: true });
  const config = (await started.promise)?.config;
  if (config === undefined) return;
  const { host } = context;
  const signal = AbortSignal.any([stop, left.signal]);
  const log = createLog(config.logLevel).child({ process: "effects" });
  await serveEffects(config, { host, log, signal, acceptExpired: false, isBeside: true });
}

/**
 * The lowest priority: the effects take a processor that the gateway and nats-server do not need,
 * and catch up later. Linux has a priority per thread, and new threads inherit it. If the system
 * does not allow it, the effects keep the gateway's.
 */
function lowerPriority(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // It keeps the gateway's.
  }
}

/** Rejects when the process could not be started. */
function endOf(child: ChildProcess): Promise<object> {
  return new Promise((resolve, reject) => {
    child.on("error", (error) => {
      if (child.pid === undefined) reject(error);
    });
    child.once("exit", (code, signal) => resolve({ pid: child.pid, code, signal }));
  });
}
