// The command tree: names, arguments, options and the function of each command.
// docs/reference/commands.md is generated from it.

import { Command, Help, Option } from "commander";
import type { CommandContext, ConfiguredCommand } from "../commands/context.ts";
import type { EraseOptions } from "../commands/erase/erase.ts";
import {
  compressions,
  type ExportOptions,
  exportEvents,
  formats,
} from "../commands/export/export.ts";
import { gather } from "../commands/gather.ts";
import { formatNames } from "../commands/import/formats/detect.ts";
import type { ImportOptions } from "../commands/import/import.ts";
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
  testingDefaults,
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
import { positiveNumber, streamShare, version } from "./options.ts";
import { addSinks } from "./sink-commands.ts";
import type { TestingOptions } from "./testing.ts";

const doctorCommand = "doctor";

export function commandLine(context: CommandContext): Command {
  const program = new Command("penstock")
    .description("Receives product-analytics events over HTTP and stores them in NATS JetStream.")
    .showHelpAfterError("(add --help for the list of commands and options)")
    .configureHelp({ groupItems: settingsLast })
    .version(version)
    .exitOverride()
    .hook("preAction", (_, command) => {
      // The scanner is not loaded for doctor, which reports a missing one among its findings.
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

function settingsLast<Item extends Command | Option>(
  _: Item[],
  visible: Item[],
  groupOf: (item: Item) => string,
): Map<string, Item[]> {
  const isSetting = (item: Item) => groupOf(item) === settingsHeading;
  const sorted = visible.toSorted((one, other) => +isSetting(one) - +isSetting(other));
  return new Help().groupItems(sorted, sorted, groupOf);
}

// The modules that serve are imported only when they run: main.ts must set a variable before
// uWebSockets.js is loaded, and other commands start faster.
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
      .description("run the gateway with an embedded nats-server and a sample project"),
    allSettings,
    upDefaults,
  ).action(async (_, command: Command) => {
    const { up } = await import("./serve.ts");
    const config = configOf(command, context, upDefaults);
    await up(config, context, { isEffectsPortGiven: isGiven(command, context, "effectsPort") });
  });
  withSettings(
    program
      .command("testing")
      .description(
        "run a gateway for automated tests: on free ports, with a temporary store, a sample project, and /testing on the admin port to read and await stored events",
      )
      .option("--json", "print the addresses and the key as one line of JSON", false)
      .option("--exit-with-stdin", "stop when standard input closes", false),
    allSettings,
    testingDefaults,
  ).action(async (options: TestingOptions, command: Command) => {
    const { testing } = await import("./testing.ts");
    await testing(configOf(command, context, testingDefaults), options, context);
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
    .option("--json", "print JSON", false)
    .option("--strict", "exit with code 1 on warnings too", false)
    .action(
      async (options: { monitor?: string; json: boolean; strict: boolean }, command: Command) => {
        const { doctor } = await import("../commands/doctor/doctor.ts");
        await doctor(settingsOf(command, context), options, context);
      },
    );
}

function addProjects(program: Command, context: CommandContext): void {
  const project = program.command("project").description("add and change projects and their keys");
  // A suggestion for a mistyped command could be a command that invalidates keys.
  project.showSuggestionAfterError(false);
  const of = (command: Command): ConfiguredCommand => projectCommand(command, context);
  withNats(project.command("add <id>").description("add a project"))
    .option("--name <name>", "display name; default: the id")
    .option("--key <key>", "API key; default: a new random key")
    .action(async (id: string, options: { name?: string; key?: string }, command: Command) => {
      await add(of(command), { id, name: options.name, key: options.key });
    });
  withNats(project.command("list").description("list all projects"))
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }, command: Command) => {
      await list(of(command), options.json);
    });
  withNats(
    project.command("rotate <id>").description("replace the keys of a project with a new one"),
  )
    .option("--keep-old", "keep the old keys valid", false)
    .action(async (id: string, options: { keepOld: boolean }, command: Command) => {
      await rotate(of(command), id, options.keepOld);
    });
  withNats(
    project
      .command("retire <id>")
      .description("invalidate all keys of a project except the newest"),
  ).action(async (id: string, _, command: Command) => await retire(of(command), id));
  withNats(
    project
      .command("complete")
      .description("declare the registry complete after a loss, once every project is added again"),
  ).action(async (_, command: Command) => await complete(of(command)));
  project.command("remove <id>", { hidden: true }).aliases(["delete", "rm"]).action(remove);
  withNats(project.command("disable <id>").description("reject the events of a project")).action(
    async (id: string, _, command: Command) => await enable(of(command), id, false),
  );
  withNats(
    project.command("enable <id>").description("accept the events of a project again"),
  ).action(async (id: string, _, command: Command) => await enable(of(command), id, true));
  addQuotaAndUsage(project, context);
}

function addQuotaAndUsage(project: Command, context: CommandContext): void {
  withNats(
    project
      .command("limit <id>")
      .description(
        "set the quota (per gateway process) and the stream share of a project; limits that are not named stay unchanged",
      ),
  )
    .option(
      "--events-per-second <number>",
      "maximum events per second; more return 429 rate_limited",
      positiveNumber,
    )
    .option(
      "--bytes-per-second <number>",
      "maximum bytes of bodies per second, after decompression; more return 429 rate_limited",
      positiveNumber,
    )
    .option(
      "--burst <seconds>",
      `size of a burst, in seconds of the rates; at least ${burstEventsMin} events and ${burstBytesMin} bytes; default: ${burstSecondsDefault}`,
      positiveNumber,
    )
    .option(
      "--stream-share <per cent>",
      "maximum share of a stream, in per cent; more returns 503 project_full; default: PENSTOCK_PROJECT_SHARE",
      streamShare,
    )
    .option("--none", "remove all limits of the project", false)
    .action(async (id: string, options: LimitOptions, command: Command) => {
      await limit(projectCommand(command, context), id, options);
    });
  withNats(
    project
      .command("usage [id]")
      .description("show how many events projects sent, and how many were rejected"),
  )
    .option("--json", "print JSON", false)
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
      "copy stored events from leaf nodes, named by JetStream domain, to this hub, and show the progress",
    )
    .action(async (leaves: string[], _, command: Command) => {
      await gather(configOf(command, context), leaves, context);
    });
  withNats(
    program
      .command("tail")
      .description("print events as they are stored: one short line each, or JSON if piped"),
  )
    .option("--project <id>", "only events of this project")
    .addOption(new Option("--lane <lane>", "only events of this lane").choices(lanes))
    .option("--event <name>", "only events with this name (repeatable)", collect, [])
    .option("--distinct-id <id>", "only events of this distinct id (repeatable)", collect, [])
    .addOption(
      new Option(
        "--format <format>",
        "text: one short line per event; json: the whole record; default: text on a terminal, else json",
      ).choices(tailFormats),
    )
    .option("--from-start", "include events that are already stored", false)
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
      .description("write the stored events of a project, one JSON object per line"),
  )
    .addOption(new Option("--lane <lane>", "only events of this lane").choices(lanes))
    .option("--from <time>", "only events received at or after this day or time (UTC)")
    .option(
      "--to <time>",
      "only events received before this day or time (UTC), or now: the start of the export",
    )
    .option(
      "--out <file>",
      "file to write, created once the export is complete; default: standard output",
    )
    .option("--force", "replace the file of --out if it exists", false)
    .addOption(new Option("--compress <form>", "compress the output").choices(compressions))
    .addOption(
      new Option(
        "--format <form>",
        "ndjson, or parquet: one Parquet file, requires --out; default: ndjson",
      ).choices(formats),
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

function addErase(program: Command, context: CommandContext): void {
  withSettings(
    program
      .command("erase <project>")
      .description(
        "remove the events of a person from the streams, and the person from the effects",
      ),
    [...natsSettings, "effectsUrl"],
  )
    .option(
      "--distinct-id <id>",
      "distinct id of the person (repeatable); the person's other ids are erased too",
      collect,
      [],
    )
    .option("--dry-run", "only count what would be erased", false)
    .option("--yes", "do not ask for confirmation", false)
    .option("--no-effects", "erase only the given ids; use it if there is no effects database")
    .option(
      "--allow-behind",
      "erase even if the effects have not applied all events; ids of the person that the effects do not know yet are not erased",
      false,
    )
    .option(
      "--receipt <file>",
      "file of the receipt; default: penstock-erasure-<id>.json in the working folder",
    )
    .action(
      async (
        project: string,
        options: Omit<EraseOptions, "project" | "version">,
        command: Command,
      ) => {
        const { erase } = await import("../commands/erase/erase.ts");
        const config = configOf(command, context);
        await erase({ config, context }, { ...options, project, version });
      },
    );
}

const batchBytesDefault = 4_194_304;
const lineBytesMaxDefault = 8_388_608;

function addImport(program: Command, context: CommandContext): void {
  program
    .command("import <file...>")
    .description(
      "send files of events to a gateway as history: NDJSON, also compressed with gzip or zstd; - is standard input. A second run resumes after the last stored line",
    )
    .option("--url <url>", "URL of the gateway, such as http://127.0.0.1:8000")
    .option("--key <key>", "API key of the project")
    .addOption(
      new Option("--format <name>", "format of the lines; auto: detected from the first lines")
        .choices(formatNames)
        .default("auto"),
    )
    .option("--dry-run", "send nothing; list every line that would not be stored", false)
    .option(
      "--allow-loss",
      "exit with code 0 even if a line, or a part of one, is not stored; default: exit code 1",
      false,
    )
    .option("--strict", "exit with code 1 also if an event is stored with any warning", false)
    .option("--restart", "start from the beginning, even if an earlier run stored lines", false)
    .option(
      "--state <file>",
      "file that records the progress; default: <file>.penstock-import; none for standard input",
    )
    .option(
      "--same-project",
      "resume although the state file names another address or key; use it if the project is the same",
      false,
    )
    .option(
      "--give-up-after <seconds>",
      "exit if the gateway has accepted nothing for this long; default: never",
      positiveNumber,
    )
    .option(
      "--time-zone <zone>",
      "time zone of a Mixpanel project whose exports have local times, such as Asia/Kolkata or +05:30; default: UTC",
    )
    .option("--group-type <name>", "group type of Segment group calls that have none", "company")
    .option("--gzip", "compress requests; use it if the connection to the gateway is slow", false)
    .option(
      "--batch-bytes <number>",
      "maximum bytes of lines per request",
      positiveBytes,
      batchBytesDefault,
    )
    .option(
      "--line-bytes-max <number>",
      "maximum bytes of a line; longer lines are skipped",
      positiveBytes,
      lineBytesMaxDefault,
    )
    .action(async (files: string[], options: ImportOptions) => {
      const { importFiles } = await import("../commands/import/import.ts");
      await importFiles(files, options, context);
    });
}

function positiveBytes(text: string): number {
  return Math.ceil(positiveNumber(text));
}
