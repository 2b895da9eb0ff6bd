// What main.ts lends to a command: the outside world as arguments, so that a command never touches
// `process`.

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
  /** What a command may be given to read. */
  readonly stdin: Readable;
  /** Where a command prints its results. */
  readonly stdout: Writable;
  /** Where status lines and the log go. */
  readonly stderr: Writable;
  /** Aborted by the first SIGINT or SIGTERM, and when nobody reads standard output any more. */
  readonly stop: AbortSignal;
}

/**
 * An expected failure of a command. Only its message is shown. An empty message means that the
 * command has already printed what went wrong.
 */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageExitCode = 2;
