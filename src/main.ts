#!/usr/bin/env node
// The process: arguments, signals and exit codes (0 well, 1 failed, 2 wrong arguments or
// settings). The only file that touches `process`; commands get what they need of it as arguments.

import type { CommandContext } from "./commands/context.ts";

// The check stands before everything, and the rest is imported behind it: what it imports of Node
// is not there in an older one, which would say so in its own words, before a line had run.
const nodeMin = "22.19";
if (isOlder(process.versions.node, nodeMin)) {
  process.stderr.write(
    `penstock: needs Node ${nodeMin}, this is ${process.version}: start it with npm, or scripts/run.mjs\n`,
  );
  process.exit(1);
}

// uWebSockets.js reads this variable when it is loaded, so the commands that serve are imported
// only when they run, after this line. Its default of 4 KiB is less than a browser's cookies and
// referrer can take, and an SDK does not try again after that refusal.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";

// Files are locked by Node's own SQLite, which the pinned Node calls an experiment each time.
const { emitWarning } = process;
process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
  if (String(warning).startsWith("SQLite is an experimental feature")) return;
  Reflect.apply(emitWarning, process, [warning, ...rest]);
}) as typeof emitWarning;

const { CommanderError } = await import("commander");
const { commandLine } = await import("./app/command-line.ts");
const { createLog } = await import("./platform/base/log.ts");
const { CommandError, usageExitCode } = await import("./commands/context.ts");
const { refuseNpmOptions } = await import("./commands/npm-options.ts");
const { stopSignal } = await import("./commands/stop-signal.ts");
const { forTerminal } = await import("./commands/terminal.ts");

async function main(): Promise<number> {
  const { stdout, stderr } = process;
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

/** Whether the version comes before the other one, by major and minor. */
function isOlder(version: string, other: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split(".").map(Number);
  return major < otherMajor || (major === otherMajor && minor < otherMinor);
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
