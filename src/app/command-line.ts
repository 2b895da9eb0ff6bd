import { version } from "../platform/base/version.ts";
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
  retire,
  rotate,
  usage,
} from "../commands/project.ts";
import type { RemoveOptions } from "../commands/project-remove.ts";
import {
  allSettings,
  configOf,
  isGiven,
  natsSettings,
  settingsHeading,
  settingsOf,
  streamSettings,
  testingDefaults,
  testingSettings,
  upDefaults,
  withSettings,
} from "../commands/settings.ts";
import type { PurgeOptions, SetOptions } from "../commands/stream/stream.ts";
import { type TailFormat, tail, tailFormats } from "../commands/tail.ts";
import { burstBytesMin, burstEventsMin } from "../gateway/projects/quota/meter.ts";
import { burstSecondsDefault } from "../gateway/projects/quota/quota.ts";
import { workerCommand } from "../gateway/workers/worker-process.ts";
import type { Lane } from "../platform/base/lane.ts";
import { lanes } from "../platform/nats/names.ts";
import { loadAddon } from "../records/native.ts";
import { acceptExpiredHelp, addEffects, addEffectsReading } from "./effects-commands.ts";
import { duration, positiveInteger, positiveNumber, streamShare } from "./options.ts";
import { addRejected } from "./rejected-commands.ts";
import { addRules } from "./rules-commands.ts";
import { addSinks } from "./sink-commands.ts";
import type { TestingOptions } from "./testing.ts";

const doctorCommand = "doctor";

export function commandLine(context: CommandContext): Command {
  const program = new Command("penstock")
    .description("Receives product-analytics events over HTTP and stores them in NATS JetStream.")
    .showHelpAfterError("(add --help for the list of commands and options)")
    .configureHelp({ groupItems: settingsLast })
    .version(version)
    .enablePositionalOptions()
    .exitOverride()
    .hook("preAction", (_, command) => {
      if (command.name() !== doctorCommand) loadAddon();
    });
  addServing(program, context);
  addDoctor(program, context);
  addProjects(program, context);
  addRules(program, context);
  addStreams(program, context);
  addReading(program, context);
  addImport(program, context);
  addEffects(program, context);
  addEffectsReading(program, context);
  addSinks(program, context);
  addErase(program, context);
  addRejected(program, context);
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

// The modules of `serve` and `up` are imported only when these commands run. So main.ts can set a
// variable before uWebSockets.js is loaded, and the other commands start faster.
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
  )
    .option("--accept-expired", acceptExpiredHelp, false)
    .action(async ({ acceptExpired }: { acceptExpired: boolean }, command: Command) => {
      const { up } = await import("./serve.ts");
      const config = configOf(command, context, upDefaults);
      const isEffectsPortGiven = isGiven(command, context, "effectsPort");
      await up(config, context, { isEffectsPortGiven, acceptExpired });
    });
  withSettings(
    program
      .command("testing")
      .description(
        "run a gateway for automated tests: on free ports, with a temporary store, a sample project, and /testing on the admin port to read and await stored events",
      )
      .option("--json", "print the addresses and the key as one line of JSON", false)
      .option("--exit-with-stdin", "stop when standard input closes", false)
      // The suggestion after --nats-url would be --nats-port, which is a different setting.
      .showSuggestionAfterError(false),
    testingSettings,
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
      .description("check the environment of a gateway with these settings; changes nothing"),
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
  // A suggestion after a typo could be a command that makes API keys invalid.
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
    project.command("rotate <id>").description("replace the keys of a project with a new key"),
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
      .description(
        "declare the registry complete after a loss, when every project has been added again",
      ),
  ).action(async (_, command: Command) => await complete(of(command)));
  addRemoval(project, context);
  withNats(project.command("disable <id>").description("reject the events of a project")).action(
    async (id: string, _, command: Command) => await enable(of(command), id, false),
  );
  withNats(
    project.command("enable <id>").description("accept the events of a project again"),
  ).action(async (id: string, _, command: Command) => await enable(of(command), id, true));
  addQuotaAndUsage(project, context);
}

function addRemoval(project: Command, context: CommandContext): void {
  withSettings(
    project
      .command("remove <id>")
      .description(
        "remove a project, its stored events in both lanes, and its people, groups and usage in the effects",
      ),
    [...natsSettings, "effectsUrl"],
  )
    .option("--dry-run", "only count what would be removed", false)
    .option("--yes", "do not ask for confirmation", false)
    .option(
      "--no-effects",
      "keep its people, groups and usage; use it if you do not run the effects",
    )
    .action(async (id: string, options: RemoveOptions, command: Command) => {
      const { removeProject } = await import("../commands/project-remove.ts");
      await removeProject(projectCommand(command, context), id, options);
    });
}

function addStreams(program: Command, context: CommandContext): void {
  const stream = program
    .command("stream")
    .description("show, limit, purge, back up and restore the streams");
  stream.showSuggestionAfterError(false);
  const of = (command: Command): ConfiguredCommand => projectCommand(command, context);
  const withReaders = (command: Command) =>
    withSettings(command, [...natsSettings, "partitions", "effectsUrl"])
      .option("--unread", "remove messages even if a reader has not read them", false)
      .option(
        "--no-effects",
        "do not check the effects database; use it if you do not run the effects",
      );
  withNats(
    stream
      .command("show [stream]")
      .description("show the streams, of a lane or one by its name: size, limits and readers"),
  )
    .option("--json", "print JSON", false)
    .action(async (which: string | undefined, options: { json: boolean }, command: Command) => {
      const { showStreams } = await import("../commands/stream/stream.ts");
      await showStreams(of(command), which, options.json);
    });
  withSettings(
    withReaders(
      stream
        .command("set <stream>")
        .description(
          "set the retention of a lane or a stream; gateways then leave that limit unchanged",
        ),
    ),
    streamSettings.filter((name) => name !== "partitions"),
  )
    .option("--max-age <duration>", "maximum age of an event, such as 12h or 7d", duration)
    .option("--max-bytes <bytes>", "maximum size of each stream", positiveInteger)
    .option("--from-settings", "use the limits of the settings again", false)
    .action(async (which: string, options: SetOptions, command: Command) => {
      const { setLimits } = await import("../commands/stream/stream.ts");
      await setLimits(of(command), which, options);
    });
  withReaders(
    stream
      .command("purge <stream>")
      .description("remove stored messages of a lane or a stream; those stored meanwhile stay"),
  )
    .option("--project <id>", "only messages of this project")
    .option("--to <sequence>", "only messages up to this sequence of the stream", positiveInteger)
    .option("--dry-run", "only count what would be removed", false)
    .option("--yes", "do not ask for confirmation", false)
    .action(async (which: string, options: PurgeOptions, command: Command) => {
      const { purge } = await import("../commands/stream/stream.ts");
      await purge(of(command), which, options);
    });
  const withServer = (command: Command) => withSettings(command, [...natsSettings, "natsServer"]);
  withServer(
    stream
      .command("backup <folder> [stream]")
      .description(
        "write the streams, and with all of them the project registry, into a folder; gateways may run",
      ),
  ).action(async (folder: string, which: string | undefined, _, command: Command) => {
    const { backup } = await import("../commands/stream/backup.ts");
    const { withEmbedded } = await import("./embed.ts");
    await withEmbedded(of(command), { isNew: false }, (ready) => backup(ready, folder, which));
  });
  withServer(
    stream
      .command("restore <folder> [stream]")
      .description(
        "create the streams of a backup, or those of a lane, or one; other streams of these names must not exist",
      ),
  )
    .option(
      "--replace-empty",
      "replace streams that never had a message; stop the gateways first",
      false,
    )
    .action(
      async (
        folder: string,
        which: string | undefined,
        { replaceEmpty }: { replaceEmpty: boolean },
        command: Command,
      ) => {
        const { checkedBackup, restore } = await import("../commands/stream/backup.ts");
        const { withEmbedded } = await import("./embed.ts");
        const backup = await checkedBackup(folder, which, context.stop);
        await withEmbedded(of(command), { isNew: true }, (ready) =>
          restore(ready, folder, { ...backup, replaceEmpty }),
        );
      },
    );
}

function addQuotaAndUsage(project: Command, context: CommandContext): void {
  withNats(
    project
      .command("limit <id>")
      .description(
        "set the quota (per gateway process) and the stream share of a project; other limits stay unchanged",
      ),
  )
    .option(
      "--events-per-second <number>",
      "maximum events per second; above it, requests get 429 rate_limited",
      positiveNumber,
    )
    .option(
      "--bytes-per-second <number>",
      "maximum bytes of bodies per second, after decompression; above it, requests get 429 rate_limited",
      positiveNumber,
    )
    .option(
      "--burst <seconds>",
      `size of a burst, in seconds of the rates; at least ${burstEventsMin} events and ${burstBytesMin} bytes; default: ${burstSecondsDefault}`,
      positiveNumber,
    )
    .option(
      "--stream-share <per cent>",
      "maximum share of a stream, in per cent; above it, requests get 503 project_full; default: PENSTOCK_PROJECT_SHARE",
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
      .description("print events as they are stored: one short line per event, or JSON if piped"),
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
      "only events received before this day or time (UTC); default: the start of the export",
    )
    .option(
      "--out <file>",
      "file to write; created when the export is complete; default: standard output",
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
      "erase even if the effects have not applied all events; ids in unapplied events are not erased",
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
      "send files of events to a gateway as history: NDJSON, optionally compressed with gzip or zstd; - is standard input. A second run resumes after the last stored line",
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
      "exit with code 0 even if a line or a part of a line is not stored; default: exit code 1",
      false,
    )
    .option(
      "--strict",
      "exit with code 1 even if the only problem is a warning on a stored event",
      false,
    )
    .option("--restart", "start from the beginning, even if an earlier run stored lines", false)
    .option(
      "--state <file>",
      "file that records the progress; default: <file>.penstock-import; none for standard input",
    )
    .option(
      "--same-project",
      "resume even if the state file names a different address or key of the same project",
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
    .option(
      "--group-type <name>",
      "group type of Segment group calls without a group type",
      "company",
    )
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
