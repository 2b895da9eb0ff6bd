// The outside world as arguments: main.ts passes this context to a command, so that commands never
// use `process` directly.

import type { Readable, Writable } from "node:stream";
import type { SupervisorChannel } from "../gateway/workers/worker.ts";
import type { ProcessHost } from "../platform/embedded/process-identity.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: ProcessHost;
  /** The file that Node runs to start another process of this program. */
  readonly mainFile: string;
  /** The channel to the process that forked this one. */
  readonly channel: SupervisorChannel;
  readonly stdin: Readable;
  /** The output for the results of a command. */
  readonly stdout: Writable;
  /** The output for status lines and the log. */
  readonly stderr: Writable;
  /**
   * A signal that aborts at the first SIGINT, SIGTERM or SIGHUP, or when the reader of standard output
   * closes its end.
   */
  readonly stop: AbortSignal;
}

/**
 * The error for an expected failure of a command. Only its message is shown. An empty message means
 * that the command has already printed the failure.
 */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageExitCode = 2;
