// The commands and their flags: what each is called, what it takes, and which function runs it.
// docs/reference/commands.md is generated from this tree. This file does not touch `process`: what
// a command needs from outside comes with the context.

import { Command, Help, Option } from "commander";
import type { ConfiguredCommand } from "../commands/configured-command.ts";
import type { CommandContext } from "../commands/context.ts";
import {
  compressions,
  type ExportOptions,
  exportEvents,
  formats,
} from "../commands/export/export.ts";
import { gather } from "../commands/gather.ts";
import {
  add,
  complete,
  enable,
  type LimitOptions,
  limit,
  list,
  remove,
  retire,
  rotate,
  usage,
} from "../commands/project.ts";
import {
  allSettings,
  configOf,
  isGiven,
  natsSettings,
  settingsHeading,
  settingsOf,
  streamSettings,
  upDefaults,
  withSettings,
} from "../commands/settings.ts";
import { type TailFormat, tail, tailFormats } from "../commands/tail.ts";
import { burstBytesMin, burstEventsMin } from "../gateway/projects/quota/meter.ts";
import { burstSecondsDefault } from "../gateway/projects/quota/quota.ts";
import { workerCommand } from "../gateway/workers/worker-process.ts";
import type { Lane } from "../platform/base/lane.ts";
import { lanes } from "../platform/nats/names.ts";
import { loadAddon } from "../records/native.ts";
import { addEffects, addEffectsReading } from "./effects-commands.ts";
import { addErase } from "./erase-command.ts";
import { addImport } from "./import-command.ts";
import { positiveNumber, streamShare, version } from "./options.ts";
import { addSinks } from "./sink-commands.ts";

const doctorCommand = "doctor";

export function commandLine(context: CommandContext): Command {
  const program = new Command("penstock")
    .description("Takes product-analytics events over HTTP and stores them in NATS JetStream.")
    .showHelpAfterError("(add --help for what there is)")
    .configureHelp({ groupItems: settingsLast })
    .version(version)
    .exitOverride()
    .hook("preAction", (_, command) => {
      // doctor reports a missing scanner among its findings.
      if (command.name() !== doctorCommand) loadAddon();
    });
  addServing(program, context);
  addDoctor(program, context);
  addProjects(program, context);
  addReading(program, context);
  addImport(program, context);
  addEffects(program, context);
  addEffectsReading(program, context);
  addSinks(program, context);
  addErase(program, context);
  return program;
}

/** Groups what a help lists: a command's own options, and below them the settings. */
function settingsLast<Item extends Command | Option>(
  _: Item[],
  visible: Item[],
  groupOf: (item: Item) => string,
): Map<string, Item[]> {
  const isSetting = (item: Item) => groupOf(item) === settingsHeading;
  const sorted = visible.toSorted((one, other) => +isSetting(one) - +isSetting(other));
  return new Help().groupItems(sorted, sorted, groupOf);
}

// The modules that serve are imported only when they run: main.ts sets something up before
// uWebSockets.js is loaded, and other commands start faster without them.
function addServing(program: Command, context: CommandContext): void {
  withAll(program.command("serve").description("run the gateway")).action(
    async (_, command: Command) => {
      const { serve } = await import("./serve.ts");
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
    const { up } = await import("./serve.ts");
    const config = configOf(command, context, upDefaults);
    await up(config, context, { isEffectsPortGiven: isGiven(command, context, "effectsPort") });
  });
  program.command(workerCommand, { hidden: true }).action(async () => {
    const { work } = await import("./workers.ts");
    await work(context);
  });
}

function addDoctor(program: Command, context: CommandContext): void {
  withAll(
    program
      .command(doctorCommand)
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
        const { doctor } = await import("../commands/doctor/doctor.ts");
        await doctor(settingsOf(command, context), options, context);
      },
    );
}

function addProjects(program: Command, context: CommandContext): void {
  const project = program.command("project").description("add and change projects and their keys");
  // No suggestions here: the name nearest to a mistyped one may be that of a command that ends
  // keys.
  project.showSuggestionAfterError(false);
  const of = (command: Command): ConfiguredCommand => projectCommand(command, context);
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
  withNats(
    project
      .command("complete")
      .description("after a loss of the registry: say that every project is in it again"),
  ).action(async (_, command: Command) => await complete(of(command)));
  project.command("remove <id>", { hidden: true }).aliases(["delete", "rm"]).action(remove);
  withNats(project.command("disable <id>").description("refuse the project's events")).action(
    async (id: string, _, command: Command) => await enable(of(command), id, false),
  );
  withNats(project.command("enable <id>").description("take the project's events again")).action(
    async (id: string, _, command: Command) => await enable(of(command), id, true),
  );
  addQuotaAndUsage(project, context);
}

function addQuotaAndUsage(project: Command, context: CommandContext): void {
  withNats(
    project
      .command("limit <id>")
      .description(
        "set what the project may send to each gateway process, and fill of a stream; limits that are not named stay",
      ),
  )
    .option("--events-per-second <number>", "past it: 429 rate_limited", positiveNumber)
    .option(
      "--bytes-per-second <number>",
      "of bodies, after decompression; past it: 429 rate_limited",
      positiveNumber,
    )
    .option(
      "--burst <seconds>",
      `so many seconds' worth at once, and never less than ${burstEventsMin} events and ${burstBytesMin} bytes; default: ${burstSecondsDefault}`,
      positiveNumber,
    )
    .option(
      "--stream-share <per cent>",
      "of a stream that the project may fill; past it: 503 project_full; default: PENSTOCK_PROJECT_SHARE",
      streamShare,
    )
    .option("--none", "remove all limits of the project", false)
    .action(async (id: string, options: LimitOptions, command: Command) => {
      await limit(projectCommand(command, context), id, options);
    });
  withNats(
    project.command("usage [id]").description("what projects have sent, and how much was refused"),
  )
    .option("--json", "as JSON", false)
    .action(async (id: string | undefined, options: { json: boolean }, command: Command) => {
      await usage(projectCommand(command, context), id, options.json);
    });
}

function projectCommand(command: Command, context: CommandContext): ConfiguredCommand {
  return { config: configOf(command, context), context };
}

interface TailFlags {
  readonly project?: string;
  readonly lane?: Lane;
  readonly event: readonly string[];
  readonly distinctId: readonly string[];
  readonly format?: TailFormat;
  readonly fromStart: boolean;
}

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value];
}

function addReading(program: Command, context: CommandContext): void {
  withSettings(program.command("gather [leaf...]"), [...natsSettings, ...streamSettings])
    .description(
      "run at a hub: gather what is stored at its leaf nodes, named by JetStream domain, and show how far it is",
    )
    .action(async (leaves: string[], _, command: Command) => {
      await gather(configOf(command, context), leaves, context);
    });
  withNats(
    program
      .command("tail")
      .description("print events as they are stored: a short line each, or JSON when piped"),
  )
    .option("--project <id>", "only events of this project")
    .addOption(new Option("--lane <lane>", "only events of this lane").choices(lanes))
    .option("--event <name>", "only events with this name (repeatable)", collect, [])
    .option("--distinct-id <id>", "only events of this distinct id (repeatable)", collect, [])
    .addOption(
      new Option(
        "--format <format>",
        "text: a short line per event; json: the whole record; default: text on a terminal, else json",
      ).choices(tailFormats),
    )
    .option("--from-start", "also events that are stored already", false)
    .action(async (options: TailFlags, command: Command) => {
      const { lane, event, distinctId, format, ...rest } = options;
      const isTerminal = (context.stdout as { isTTY?: boolean }).isTTY === true;
      const which = {
        ...rest,
        project: options.project,
        lanes: lane === undefined ? lanes : [lane],
        events: event,
        distinctIds: distinctId,
        format: format ?? (isTerminal ? "text" : "json"),
      };
      await tail(configOf(command, context), which, context);
    });
  withNats(
    program
      .command("export <project>")
      .description("write a project's events as they are stored, one JSON object a line, and end"),
  )
    .addOption(new Option("--lane <lane>", "only this lane's").choices(lanes))
    .option("--from <time>", "received at this day or time (UTC), or later")
    .option("--to <time>", "received before it; now: before the export began")
    .option("--out <file>", "into this file, which appears when it is whole")
    .option("--force", "replace the file of --out, where it is there", false)
    .addOption(new Option("--compress <form>", "compress it").choices(compressions))
    .addOption(
      new Option("--format <form>", "parquet: as one Parquet file; needs --out").choices(formats),
    )
    .action(
      async (
        project: string,
        options: Omit<ExportOptions, "lanes"> & { readonly lane?: Lane },
        command: Command,
      ) => {
        const wanted = options.lane === undefined ? lanes : [options.lane];
        const which = { ...options, project, lanes: wanted };
        await exportEvents(configOf(command, context), which, context);
      },
    );
}

function withAll(command: Command): Command {
  return withSettings(command, allSettings);
}

function withNats(command: Command): Command {
  return withSettings(command, natsSettings);
}
