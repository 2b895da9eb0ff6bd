import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { SupervisorChannel } from "../gateway/workers/worker.ts";
import type { ProcessHost } from "../platform/embedded/process-identity.ts";
import type { Config } from "../platform/settings/config.ts";
import { forTerminal } from "./terminal.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: ProcessHost;
  readonly mainFile: string;
  readonly channel: SupervisorChannel;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Aborts at the first stop signal, or when the program that reads standard output ends. */
  readonly stop: AbortSignal;
}

/** An expected failure. Only its message is printed, unless the message is empty. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageExitCode = 2;
/** The exit code of a change that a stop signal has interrupted: 128 + SIGINT. */
export const interruptedExitCode = 128 + constants.signals.SIGINT;

export interface ConfiguredCommand {
  readonly config: Config;
  readonly context: CommandContext;
}

type WithContext = Pick<ConfiguredCommand, "context">;

export function say({ context }: WithContext, line: string): void {
  context.stdout.write(`${forTerminal(line)}\n`);
}

export function note({ context }: WithContext, line: string): void {
  context.stderr.write(`${forTerminal(line)}\n`);
}

/**
 * Several signals within this time count as one, because the terminal and npm each forward Ctrl-C.
 */
const sameKeyPressMs = 300;

/** Returns a controller that the first stop signal aborts. A second signal ends the process. */
export function stopSignal(host: Pick<NodeJS.Process, "on" | "exit">): AbortController {
  const stop = new AbortController();
  let firstAtMs: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    host.on(signal, () => {
      const monotonicMs = performance.now();
      firstAtMs ??= monotonicMs;
      if (!stop.signal.aborted) stop.abort();
      else if (monotonicMs - firstAtMs > sameKeyPressMs) host.exit(128 + constants.signals[signal]);
    });
  }
  return stop;
}
