// `npm run load`: arguments, signals and exit codes. 0: the rate was reached and no event was lost;
// 1: otherwise; 2: wrong usage. Reads no settings of the gateway.

import process from "node:process";
import { CommanderError } from "commander";
import { refuseNpmOptions } from "../../src/commands/called-as.ts";
import { stopSignal, usageExitCode } from "../../src/commands/context.ts";
import { commandLine, readOptions, UsageError } from "./options.ts";
import { runLoad } from "./run.ts";

async function main(): Promise<number> {
  try {
    const { stdout, stderr, env } = process;
    const args = process.argv.slice(2);
    refuseNpmOptions(commandLine(), { args, env, script: "load.ts" });
    const options = readOptions(args);
    const result = await runLoad(options, {
      host: process,
      stdout,
      stderr,
      stop: stopSignal(process).signal,
    });
    return result.ok ? 0 : 1;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    process.stderr.write(`load: ${(error as Error).message}\n`);
    return error instanceof UsageError ? usageExitCode : 1;
  }
}

const exitCode = await main();
process.stdout.write("", () => process.exit(exitCode));
