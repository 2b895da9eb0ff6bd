#!/usr/bin/env node
// The command line: arguments, signals and exit codes (0 well, 1 failed, 2 wrong usage or
// settings). The only file that touches `process`; commands get what they need of it as arguments.

import { constants } from "node:os";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { workerCommand } from "./app/worker-command.ts";
import { createLog } from "./base/log.ts";
import type { Lane } from "./base/types.ts";
import { version } from "./base/version.ts";
import { type CommandContext, CommandError, usageExitCode } from "./cli/context.ts";
import { gather } from "./cli/gather.ts";
import {
  add,
  enable,
  type LimitOptions,
  limit,
  list,
  type ProjectCommand,
  remove,
  retire,
  rotate,
  usage,
} from "./cli/project.ts";
import {
  allSettings,
  configOf,
  natsSettings,
  settingsOf,
  streamSettings,
  upDefaults,
  withSettings,
} from "./cli/settings.ts";
import { tail } from "./cli/tail.ts";
import { forTerminal } from "./cli/terminal.ts";
import { lanes } from "./nats/names.ts";
import { burstSecondsDefault, isPositive } from "./projects/quota/quota.ts";

// npm, a terminal and scripts/run.mjs each pass one Ctrl-C on, so signals this close together are
// one.
const sameKeyPressMs = 300;

// uWebSockets.js reads this when it is loaded, which is why the commands that serve are imported
// only when they run. Its default of 4 KiB is less than a browser's cookies and referrer can take,
// and its refusal is final for an SDK.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";
const nodeMajorMin = 22;

function commandLine(context: CommandContext): Command {
  const program = new Command("penstock")
    .description("Takes product-analytics events over HTTP and stores them in NATS JetStream.")
    .showHelpAfterError("(add --help for what there is)")
    .version(version)
    .exitOverride();
  const withAll = (command: Command): Command => withSettings(command, allSettings);
  const withNats = (command: Command): Command => withSettings(command, natsSettings);

  withAll(program.command("serve").description("run the gateway")).action(
    async (_, command: Command) => {
      const { serve } = await import("./app/serve.ts");
      await serve(configOf(command, context), context);
    },
  );
  withSettings(
    program
      .command("up")
      .description("run the gateway with an embedded nats-server and a project to try it with"),
    allSettings,
    upDefaults,
  ).action(async (_, command: Command) => {
    const { up } = await import("./app/serve.ts");
    await up(configOf(command, context, upDefaults), context);
  });
  withAll(
    program
      .command("doctor")
      .description("check everything a gateway with these settings needs; changes nothing"),
  )
    .option(
      "--monitor <url[,url]>",
      "monitoring endpoints of nats-server, such as http://nats-1:8222",
    )
    .option("--json", "as JSON", false)
    .option("--strict", "warnings fail too", false)
    .action(
      async (options: { monitor?: string; json: boolean; strict: boolean }, command: Command) => {
        const { doctor } = await import("./cli/doctor/doctor.ts");
        await doctor(settingsOf(command, context), options, context);
      },
    );
  program.command(workerCommand, { hidden: true }).action(async () => {
    const { work } = await import("./app/worker.ts");
    await work(context);
  });

  const project = program.command("project").description("add and change projects and their keys");
  // The name nearest to one that is mistyped may be that of a command that ends keys.
  project.showSuggestionAfterError(false);
  const of = (command: Command): ProjectCommand => ({
    config: configOf(command, context),
    context,
  });
  withNats(project.command("add <id>").description("add a project"))
    .option("--name <name>", "a name for people; default: the id")
    .option("--key <key>", "its API key; default: a new one")
    .action(async (id: string, options: { name?: string; key?: string }, command: Command) => {
      await add(of(command), { id, name: options.name, key: options.key });
    });
  withNats(project.command("list").description("list all projects"))
    .option("--json", "as JSON", false)
    .action(async (options: { json: boolean }, command: Command) => {
      await list(of(command), options.json);
    });
  withNats(
    project.command("rotate <id>").description("give the project a new key in place of the old"),
  )
    .option("--keep-old", "the old keys stay valid too", false)
    .action(async (id: string, options: { keepOld: boolean }, command: Command) => {
      await rotate(of(command), id, options.keepOld);
    });
  withNats(
    project.command("retire <id>").description("leave only the project's newest key valid"),
  ).action(async (id: string, _, command: Command) => await retire(of(command), id));
  project.command("remove <id>", { hidden: true }).aliases(["delete", "rm"]).action(remove);
  withNats(project.command("disable <id>").description("refuse the project's events")).action(
    async (id: string, _, command: Command) => await enable(of(command), id, false),
  );
  withNats(project.command("enable <id>").description("take the project's events again")).action(
    async (id: string, _, command: Command) => await enable(of(command), id, true),
  );
  withNats(
    project
      .command("limit <id>")
      .description("limit what the project may send to each gateway process"),
  )
    .option("--events-per-second <number>", "past it: 429 rate_limited", positiveNumber)
    .option(
      "--bytes-per-second <number>",
      "of bodies, after decompression; past it: 429 rate_limited",
      positiveNumber,
    )
    .option(
      "--burst <seconds>",
      `so many seconds' worth at once; default: ${burstSecondsDefault}`,
      positiveNumber,
    )
    .option("--none", "take its limits off", false)
    .action(async (id: string, options: LimitOptions, command: Command) => {
      await limit(of(command), id, options);
    });
  withNats(
    project.command("usage [id]").description("what projects have sent, and how much was refused"),
  )
    .option("--json", "as JSON", false)
    .action(async (id: string | undefined, options: { json: boolean }, command: Command) => {
      await usage(of(command), id, options.json);
    });

  withSettings(program.command("gather [leaf...]"), [...natsSettings, ...streamSettings])
    .description(
      "run at a hub: gather what is stored at its leaf nodes, named by JetStream domain, and show how far it is",
    )
    .action(async (leaves: string[], _, command: Command) => {
      await gather(configOf(command, context), leaves, context);
    });
  withNats(
    program.command("tail").description("print events as they are stored, one JSON object a line"),
  )
    .option("--project <id>", "only this project's")
    .addOption(new Option("--lane <lane>", "only this lane's").choices(lanes))
    .option("--from-start", "also what is stored already", false)
    .action(
      async (options: { project?: string; lane?: Lane; fromStart: boolean }, command: Command) => {
        const wanted = options.lane === undefined ? lanes : [options.lane];
        const which = { project: options.project, lanes: wanted, fromStart: options.fromStart };
        await tail(configOf(command, context), which, context);
      },
    );
  return program;
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (!isPositive(value)) throw new InvalidArgumentError("must be a number above 0");
  return value;
}

async function main(): Promise<number> {
  const { stdout, stderr } = process;
  if (Number.parseInt(process.versions.node, 10) < nodeMajorMin) {
    stderr.write(
      `penstock: needs Node ${nodeMajorMin}, this is ${process.version}: start it with npm, or scripts/run.mjs\n`,
    );
    return 1;
  }
  const stop = stopSignal();
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // Whoever read our output has gone, as `head` does.
    if (error.code === "EPIPE") stop.abort();
    else throw error;
  });
  const context: CommandContext = {
    env: process.env,
    host: process,
    mainFile: import.meta.filename,
    channel: process,
    stdout,
    stderr,
    stop: stop.signal,
  };
  try {
    await commandLine(context).parseAsync(process.argv);
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

/** Aborted at the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopSignal(): AbortController {
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
  return stop;
}

function dieLoudly(error: unknown): void {
  createLog("fatal").fatal({ err: error }, "a bug: the process ends");
  process.exit(1);
}

process.on("uncaughtException", dieLoudly);
process.on("unhandledRejection", dieLoudly);
const exitCode = await main();
// What is still open by now, as a gateway that waits for NATS, has been given up.
process.stdout.write("", () => process.exit(exitCode));
