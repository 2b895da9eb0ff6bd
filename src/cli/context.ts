// What main.ts lends to a command: the outside world as arguments, so that a command never touches
// `process`.

import type { Writable } from "node:stream";
import type { ProcessHost } from "../embedded/process-identity.ts";
import type { SupervisorChannel } from "../workers/worker.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: ProcessHost;
  /** The file to run for another process of this program. */
  readonly mainFile: string;
  /** To the process that forked this one. */
  readonly channel: SupervisorChannel;
  /** Results. */
  readonly stdout: Writable;
  /** Status lines and the log. */
  readonly stderr: Writable;
  /** Aborted by the first SIGINT or SIGTERM, and when nobody reads standard output any more. */
  readonly stop: AbortSignal;
}

/**
 * An expected failure of a command: the message is all that is shown; without one, it has been told
 * already.
 */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageExitCode = 2;
