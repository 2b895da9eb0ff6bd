#!/usr/bin/env node
// The entry point. Sets the exit code: 0 for success, 1 for failure, 2 for wrong arguments or
// settings.

import type { CommandContext } from "./commands/context.ts";

// Checked first, because other modules need features that older versions of Node lack.
const nodeMin = "22.19";
if (isOlder(process.versions.node, nodeMin)) {
  process.stderr.write(
    `penstock: needs Node ${nodeMin}, this is ${process.version}: in a clone start it with npm or ./penstock; for the npm package run \`npm rebuild penstock\`, which fetches one\n`,
  );
  process.exit(1);
}

// uWebSockets.js reads this variable when it is loaded. Its default of 4 KiB is too small for the
// cookies of some browsers.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";

// Node prints an experimental warning for its SQLite module, which file locks use.
const { emitWarning } = process;
process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
  if (String(warning).startsWith("SQLite is an experimental feature")) return;
  Reflect.apply(emitWarning, process, [warning, ...rest]);
}) as typeof emitWarning;

const { CommanderError } = await import("commander");
const { commandLine } = await import("./app/command-line.ts");
const { createLog } = await import("./platform/base/log.ts");
const { CommandError, usageExitCode } = await import("./commands/context.ts");
const { refuseNpmOptions } = await import("./commands/called-as.ts");
const { stopSignal } = await import("./commands/context.ts");
const { forTerminal } = await import("./commands/terminal.ts");

async function main(): Promise<number> {
  const { stdout, stderr } = process;
  const stop = stopSignal(process);
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // The program that reads the output has ended, for example `head`.
    if (error.code === "EPIPE") stop.abort();
    else throw error;
  });
  const context: CommandContext = {
    env: process.env,
    host: process,
    mainFile: import.meta.filename,
    channel: process,
    // Opened on first use, because an open standard input keeps the process alive.
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
    refuseNpmOptions(program, { args: argv.slice(2), env, script: "launch.sh" });
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    if (stop.signal.aborted && (error as Error).name === "AbortError") return 0;
    const { message } = error as Error;
    if (message !== "") stderr.write(`penstock: ${forTerminal(message)}\n`);
    return error instanceof CommandError ? error.exitCode : 1;
  }
}

function isOlder(version: string, other: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split(".").map(Number);
  return major < otherMajor || (major === otherMajor && minor < otherMinor);
}

function dieLoudly(error: unknown): void {
  createLog("fatal").fatal({ err: error }, "bug: uncaught error, the process exits");
  process.exit(1);
}

process.on("uncaughtException", dieLoudly);
process.on("unhandledRejection", dieLoudly);
const exitCode = await main();
// Drains standard output before the exit.
process.stdout.write("", () => process.exit(exitCode));
