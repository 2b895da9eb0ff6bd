// `npm run load`: arguments, signals and exit codes. 0: the rate was held and nothing was lost; 1:
// not so; 2: wrong usage. A load test must be told what to do in full on the command line; it reads
// no settings of the gateway.

import { constants } from "node:os";
import process from "node:process";
import { CommanderError } from "commander";
import { usageExitCode } from "../../src/cli/context.ts";
import { readOptions, UsageError } from "./options.ts";
import { runLoad } from "./run.ts";

// npm, a terminal and scripts/load.mjs each pass one Ctrl-C on, so signals this close together are
// one.
const sameKeyPressMs = 300;

async function main(): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2));
    const { stdout, stderr } = process;
    const result = await runLoad(options, { host: process, stdout, stderr, stop: stopSignal() });
    return result.ok ? 0 : 1;
  } catch (error) {
    // commander has said what was wrong already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    process.stderr.write(`load: ${(error as Error).message}\n`);
    return error instanceof UsageError ? usageExitCode : 1;
  }
}

/** Aborted at the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  let firstAtMs: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      const nowMs = performance.now();
      firstAtMs ??= nowMs;
      if (!stop.signal.aborted) stop.abort();
      else if (nowMs - firstAtMs > sameKeyPressMs) process.exit(128 + constants.signals[signal]);
    });
  }
  return stop.signal;
}

const exitCode = await main();
process.stdout.write("", () => process.exit(exitCode));
