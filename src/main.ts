#!/usr/bin/env node
// The process: arguments, signals and exit codes (0 well, 1 failed, 2 wrong arguments or
// settings). The only file that touches `process`; commands get what they need of it as arguments.

import { CommanderError } from "commander";
import { commandLine } from "./app/command-line.ts";
import { createLog } from "./base/log.ts";
import { type CommandContext, CommandError, usageExitCode } from "./cli/context.ts";
import { refuseNpmOptions } from "./cli/npm-options.ts";
import { stopSignal } from "./cli/stop-signal.ts";
import { forTerminal } from "./cli/terminal.ts";

// uWebSockets.js reads this variable when it is loaded, so the commands that serve are imported
// only when they run, after this line. Its default of 4 KiB is less than a browser's cookies and
// referrer can take, and an SDK does not try again after that refusal.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";
const nodeMajorMin = 22;

// Files are locked by Node's own SQLite, which the pinned Node calls an experiment each time.
const { emitWarning } = process;
process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
  if (String(warning).startsWith("SQLite is an experimental feature")) return;
  Reflect.apply(emitWarning, process, [warning, ...rest]);
}) as typeof emitWarning;

async function main(): Promise<number> {
  const { stdout, stderr } = process;
  if (Number.parseInt(process.versions.node, 10) < nodeMajorMin) {
    stderr.write(
      `penstock: needs Node ${nodeMajorMin}, this is ${process.version}: start it with npm, or scripts/run.mjs\n`,
    );
    return 1;
  }
  const stop = stopSignal(process);
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // The program that read our output has ended, as `head` does.
    if (error.code === "EPIPE") stop.abort();
    else throw error;
  });
  const context: CommandContext = {
    env: process.env,
    host: process,
    mainFile: import.meta.filename,
    channel: process,
    // Not before it is asked for: opening it would keep the process waiting.
    get stdin() {
      return process.stdin;
    },
    stdout,
    stderr,
    stop: stop.signal,
  };
  try {
    const program = commandLine(context);
    const { argv, env } = process;
    refuseNpmOptions(program, { args: argv.slice(2), env, script: "run.mjs" });
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    // commander has said what was wrong already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    if (stop.signal.aborted && (error as Error).name === "AbortError") return 0;
    const { message } = error as Error;
    if (message !== "") stderr.write(`penstock: ${forTerminal(message)}\n`);
    return error instanceof CommandError ? error.exitCode : 1;
  }
}

function dieLoudly(error: unknown): void {
  createLog("fatal").fatal({ err: error }, "a bug: the process ends");
  process.exit(1);
}

process.on("uncaughtException", dieLoudly);
process.on("unhandledRejection", dieLoudly);
const exitCode = await main();
// The exit ends what is still open by now, such as a gateway that waits for NATS: it has been given
// up. The empty write lets standard output drain first.
process.stdout.write("", () => process.exit(exitCode));
