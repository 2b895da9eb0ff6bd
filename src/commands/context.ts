// The outside world, which main.ts passes to each command.

import type { Readable, Writable } from "node:stream";
import type { SupervisorChannel } from "../gateway/workers/worker.ts";
import type { ProcessHost } from "../platform/embedded/process-identity.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: ProcessHost;
  /** The file that Node runs to start another process of this program. */
  readonly mainFile: string;
  readonly channel: SupervisorChannel;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /**
   * Aborts at the first SIGINT or SIGTERM, or when the reader of standard output closes its end.
   */
  readonly stop: AbortSignal;
}

/**
 * An expected failure: only its message is shown. If the message is empty, the command has already
 * printed the failure.
 */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageExitCode = 2;
