// Runs the effects as a child process of `up`, so that effects and gateway do not share a thread.
// If the parent process ends, even by a crash, the channel closes and the child exits.

import { type ChildProcess, fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { portFault, tryListen } from "../platform/base/http-port.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { processPauses, restartLoop } from "../platform/base/retry.ts";
import type { Config } from "../platform/settings/config.ts";
import { serveEffects } from "./effects.ts";
import { childCommand, withoutSettings } from "./options.ts";

interface StartMessage {
  readonly type: "start";
  readonly config: Config;
  readonly acceptExpired: boolean;
}

export interface EffectsChild {
  close(): Promise<void>;
}

const pauses = { ...processPauses, pauseMsMax: 30_000 } as const;
/** V8 flags for a smaller heap: 220 MiB instead of 390 MiB after 20 s at 40,000 events a second. */
const smallHeap = ["--optimize-for-size", "--max-semi-space-size=2"];
const closeGraceMs = 10_000;

export function startEffectsChild(
  config: Config,
  { env, mainFile, stop }: CommandContext,
  { log, acceptExpired }: { readonly log: Log; readonly acceptExpired: boolean },
): EffectsChild {
  const closing = new AbortController();
  let child: ChildProcess | undefined;
  let end: object = {};
  const run = async (): Promise<void> => {
    const started = fork(mainFile, ["effects", childCommand], {
      env: withoutSettings(env),
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      serialization: "advanced",
      execArgv: [...process.execArgv, ...smallHeap],
    });
    child = started;
    lowerPriority(started.pid);
    log.info({ pid: started.pid }, "effects process started");
    const ended = endOf(started);
    const message = { type: "start", config, acceptExpired } satisfies StartMessage;
    if (started.connected) started.send(message, () => {});
    end = await ended;
    child = undefined;
  };
  const kept = restartLoop(run, {
    signal: AbortSignal.any([closing.signal, stop]),
    ...pauses,
    ended: (waitMs, error) =>
      log.error(
        { ...(error === undefined ? end : { err: error }), waitMs },
        "effects process exited: starting a new one",
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

export async function runEffectsChild(context: CommandContext): Promise<void> {
  const { channel, stop } = context;
  if (channel.send === undefined)
    throw new CommandError(
      "`effects beside` is an internal command of `up`: run `penstock effects` instead",
      usageExitCode,
    );
  const left = new AbortController();
  const started = Promise.withResolvers<StartMessage | undefined>();
  channel.on("message", (message) => started.resolve(message as StartMessage));
  channel.on("disconnect", () => {
    left.abort();
    started.resolve(undefined);
  });
  stop.addEventListener("abort", () => started.resolve(undefined), { once: true });
  const message = await started.promise;
  if (message === undefined) return;
  const { config, acceptExpired } = message;
  const { host } = context;
  const signal = AbortSignal.any([stop, left.signal]);
  const log = createLog(config.logLevel).child({ process: "effects" });
  await serveEffects(config, { host, log, signal, acceptExpired, isChild: true });
}

/** Lowers the priority of a process. New threads of the process inherit it. */
function lowerPriority(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {}
}

function endOf(child: ChildProcess): Promise<object> {
  return new Promise((resolve, reject) => {
    child.on("error", (error) => {
      if (child.pid === undefined) reject(error);
    });
    child.once("exit", (code, signal) => resolve({ pid: child.pid, code, signal }));
  });
}

type Place = Pick<Config, "effectsHost" | "effectsPort">;

export async function requireEffectsPort({ effectsHost, effectsPort }: Place): Promise<number> {
  try {
    return await tryListen(effectsHost, effectsPort);
  } catch (error) {
    const fault = portFault(error as Error, effectsPort, "effectsPort");
    throw new CommandError(
      `cannot listen on ${effectsHost} port ${effectsPort} for effects queries: ${fault}`,
    );
  }
}

/**
 * Returns the port of the settings if it is free. Otherwise, returns another free port, or
 * undefined if there is none. Another process may use the port before this process opens it.
 */
export async function defaultEffectsPort(
  { effectsHost, effectsPort }: Place,
  log: Pick<Log, "warn">,
): Promise<number | undefined> {
  try {
    return await tryListen(effectsHost, effectsPort);
  } catch (error) {
    const reason = portFault(error as Error, effectsPort, "effectsPort");
    const port = await tryListen(effectsHost, 0).catch(() => undefined);
    const message =
      port === undefined
        ? "effects HTTP port unavailable: people and groups cannot be queried over HTTP (see `reason`)"
        : "effects default port is in use: using another port";
    log.warn({ effectsHost, effectsPort, instead: port, reason }, message);
    return port;
  }
}
