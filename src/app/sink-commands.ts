import path from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import {
  configOf,
  readerNatsSettings,
  readerProcessSettings,
  withSettings,
} from "../commands/settings.ts";
import { isProjectId } from "../platform/base/forms.ts";
import type { Lane } from "../platform/base/lane.ts";
import { createLog } from "../platform/base/log.ts";
import { lanes } from "../platform/nats/names.ts";
import type { Config, SettingName } from "../platform/settings/config.ts";
import type { OpenReader } from "../readers/effects/store/open.ts";
import { orUsageFault } from "./options.ts";

interface PosthogOptions extends ReadingOptions {
  readonly state?: string;
  readonly key: ReadonlyMap<string, string>;
  readonly acceptRefused: boolean;
  readonly aside: boolean;
}

type ParquetOptions = ReadingOptions & PersonOptions;

interface PostgresOptions extends ReadingOptions, PersonOptions {
  readonly to?: string;
  readonly schema: string;
  readonly ddl: boolean;
}

interface ClickHouseOptions extends ReadingOptions, PersonOptions {
  readonly database: string;
  readonly ddl: boolean;
  readonly create: boolean;
  readonly lock: boolean;
}

export function addSinks(program: Command, context: CommandContext): void {
  const sink = program
    .command("sink")
    .description("copy events from the streams into a database, into files or to PostHog");
  addPostgres(sink, context);
  addClickHouse(sink, context);
  addParquet(sink, context);
  addPosthog(sink, context);
}

function addPostgres(sink: Command, context: CommandContext): void {
  const command = sink
    .command("postgres")
    .argument("[url]", "database to write to; default: PENSTOCK_SINK_TO")
    .description("copy events into PostgreSQL");
  withPersons(withReading(command, ["sinkTo", ...personSettings]))
    .option("--to <url>", "database to write to, instead of the argument")
    .option("--schema <name>", "schema of the tables", schemaName, "penstock")
    .option("--ddl", "print the statements that create the tables, and exit", false)
    .action(async (named: string | undefined, options: PostgresOptions, command: Command) => {
      if (options.ddl) {
        const { ddl } = await import("../readers/sinks/postgres/tables.ts");
        context.stdout.write(ddl(options.schema, options));
        return;
      }
      const config = configOf(command, context);
      if (named !== undefined && options.to !== undefined)
        throw new CommandError("give the target once: as the argument or with --to", usageExitCode);
      const example = "postgres postgres://user@host/database";
      const url = requireTarget(named ?? options.to ?? config.sinkTo, example);
      const { PostgresTarget } = await import("../readers/sinks/postgres/postgres-target.ts");
      const { runSink } = await import("./sink.ts");
      const { schema, withPerson } = options;
      const target = orUsageFault(() => new PostgresTarget({ url, schema, withPerson }));
      const people = await peopleOf(config, options);
      await runSink(config, context, { target, people, ...readingOf(options) });
    });
}

function addClickHouse(sink: Command, context: CommandContext): void {
  const command = sink
    .command("clickhouse")
    .argument("[url]", "server to write to; default: PENSTOCK_SINK_TO")
    .description("copy events into ClickHouse, over HTTP");
  withPersons(withReading(command, ["sinkTo", ...personSettings]))
    .option("--database <name>", "database of the tables", schemaName, "penstock")
    .option(
      "--ddl",
      "print the statements that create the tables, and exit; without a server, for version 21.8 and newer",
      false,
    )
    .option("--no-create", "do not create the tables; they must exist")
    .option("--no-lock", "do not take the lock that keeps a second sink out")
    .action(async (named: string | undefined, options: ClickHouseOptions, command: Command) => {
      const { database, create: makesTables, lock: hasLock, withPerson } = options;
      const config = configOf(command, context);
      const given = named ?? config.sinkTo;
      if (given === undefined && options.ddl) {
        const { ddl, modernForm } = await import("../readers/sinks/clickhouse/tables.ts");
        context.stdout.write(ddl(database, modernForm, options));
        return;
      }
      const url = requireTarget(given, "clickhouse https://user@host:8443");
      const { ClickHouseTarget } = await import("../readers/sinks/clickhouse/clickhouse-target.ts");
      const target = orUsageFault(
        () => new ClickHouseTarget({ url, database, makesTables, hasLock, withPerson }),
      );
      if (options.ddl) {
        context.stdout.write(await target.ddl());
        await target.close();
        return;
      }
      const { runSink } = await import("./sink.ts");
      const people = await peopleOf(config, options);
      await runSink(config, context, { target, people, ...readingOf(options) });
    });
}

function addParquet(sink: Command, context: CommandContext): void {
  const own = ["sinkTo", "sinkFileBytes", "sinkFileSeconds", ...personSettings] as const;
  const parquet = sink
    .command("parquet")
    .argument("[folder]", "folder to write to; default: PENSTOCK_SINK_TO")
    .description("copy events into Parquet files");
  withPersons(withReading(parquet, own)).action(
    async (named: string | undefined, options: ParquetOptions, command: Command) => {
      const config = configOf(command, context);
      const folder = localFolder(requireTarget(named ?? config.sinkTo, "parquet <folder>"));
      const { duckdb } = await import("../readers/sinks/parquet/parquet-maker.ts");
      try {
        duckdb();
      } catch (error) {
        throw new CommandError((error as Error).message);
      }
      const { whyNeverMade } = await import("../readers/sinks/parquet/parquet-folder.ts");
      const why = whyNeverMade(folder);
      if (why !== undefined)
        throw new CommandError(
          `${folder} cannot be created or written to: ${why}: name another folder`,
        );
      const { ParquetTarget } = await import("../readers/sinks/parquet/parquet-target.ts");
      const { runSink } = await import("./sink.ts");
      const target = new ParquetTarget({
        folder,
        pid: context.host.pid,
        segmentBytesMax: config.sinkFileBytes,
        segmentAgeMsMax: config.sinkFileSeconds * 1_000,
        log: createLog(config.logLevel),
      });
      const people = await peopleOf(config, options);
      await runSink(config, context, { target, people, ...readingOf(options) });
    },
  );
}

function requireTarget(target: string | undefined, example: string): string {
  if (target !== undefined) return target;
  throw new CommandError(
    `no target: use penstock sink ${example}, or PENSTOCK_SINK_TO`,
    usageExitCode,
  );
}

/** Returns the folder. Rejects a URL, because it would become the name of a local folder. */
function localFolder(folder: string): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(folder))
    throw new CommandError(
      `${folder.replace(/:\/\/.*/s, "://…")} is a URL, not a local folder: use a local folder and copy its files to the remote storage`,
      usageExitCode,
    );
  return folder;
}

function addPosthog(sink: Command, context: CommandContext): void {
  withReading(
    sink
      .command("posthog")
      .argument("[url]", "server to send to; default: PENSTOCK_SINK_TO")
      .description("send events to PostHog, or to another Penstock, over HTTP"),
    ["sinkTo"],
  )
    .option("--state <folder>", "folder of its state; default: sink-posthog in the data folder")
    .option(
      "--key <project=key>",
      "API key of a project at the target, if it differs from the key in the registry (repeatable)",
      keyOfProject,
      new Map<string, string>(),
    )
    .option(
      "--accept-refused",
      "continue even if the target refuses many events in a row; refused events are stored in the rejected file",
      false,
    )
    .option("--aside", "print the rejected events, and exit", false)
    .action(async (named: string | undefined, options: PosthogOptions, command: Command) => {
      const config = configOf(command, context);
      const folder = options.state ?? path.join(config.dataDir, "sink-posthog");
      if (options.aside) {
        const { printAside } = await import("./sink-posthog.ts");
        await printAside(folder, context.stdout);
        return;
      }
      const url = requireTarget(named ?? config.sinkTo, "posthog https://us.i.posthog.com");
      const { runPosthogSink } = await import("./sink-posthog.ts");
      const { acceptRefused, key: keys } = options;
      const run = { url, folder, keys, acceptRefused, ...readingOf(options) };
      await runPosthogSink(config, context, run);
    });
}

function keyOfProject(text: string, others: ReadonlyMap<string, string>): Map<string, string> {
  const at = text.indexOf("=");
  const [project, key] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 0 || !isProjectId(project) || key === "")
    throw new InvalidArgumentError("must be <project id>=<key at the target>");
  return new Map([...others, [project, key]]);
}

function schemaName(text: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(text))
    throw new InvalidArgumentError("must match [a-z_][a-z0-9_]{0,62}");
  return text;
}

interface PersonOptions {
  readonly withPerson: boolean;
}

const personSettings: readonly SettingName[] = ["effectsUrl"];

function withPersons(command: Command): Command {
  return command.option(
    "--with-person",
    "add the uuid of each event's person, from the database of `penstock effects`",
    false,
  );
}

/**
 * Returns undefined if --with-person is not set. Rejects if the database does not exist or belongs
 * to another installation.
 */
export async function peopleOf(
  config: Config,
  { withPerson }: PersonOptions,
): Promise<OpenReader | undefined> {
  if (!withPerson) return undefined;
  const { readerAt, shownPlace, storePlace } = await import("../readers/effects/store/open.ts");
  const { OtherInstallationError, requireInstallation } = await import(
    "../readers/effects/store/installation.ts"
  );
  const place = storePlace(config);
  try {
    if (place.kind === "sqlite") {
      const { mustBeReadable } = await import("../readers/effects/store/sqlite/file-access.ts");
      mustBeReadable(place.file);
    }
    const reader = await readerAt(place);
    const installation = { prefix: config.subjectPrefix, shown: shownPlace(place) };
    await requireInstallation(reader, installation).catch((error: unknown) => {
      if (error instanceof OtherInstallationError) throw error;
    });
    return reader;
  } catch (error) {
    throw new CommandError(`--with-person: ${(error as Error).message}`);
  }
}

const processSettings: readonly SettingName[] = [
  ...readerNatsSettings,
  ...(["sinkHost", "sinkPort", "sinkBatchEvents", "sinkBatchBytes", "sinkBatchAgeMs"] as const),
  ...readerProcessSettings,
];

interface ReadingOptions {
  readonly projects?: string[];
  readonly lanes?: Lane[];
  readonly acceptExpired: boolean;
}

function withReading(command: Command, own: readonly SettingName[]): Command {
  return withSettings(command, [...processSettings, ...own])
    .option(
      "--projects <ids>",
      "only events of these projects, a comma-separated list; they must exist",
      (ids: string) => listOf(ids, "project id", isProjectId),
    )
    .option(
      "--lanes <lanes>",
      `only events of these lanes, a comma-separated list of ${lanes.join(",")}`,
      (names: string) => listOf(names, "lane", (name) => lanes.some((lane) => lane === name)),
    )
    .option(
      "--accept-expired",
      "continue even if events left their stream before they were written",
      false,
    );
}

function readingOf({ projects, lanes: wanted, acceptExpired }: ReadingOptions) {
  const named = [{ flag: "--projects", ids: projects ?? [] }];
  return { projects, named, lanes: wanted, acceptExpired };
}

function listOf(text: string, kind: string, isOne: (item: string) => boolean): string[] {
  const items = text.split(",");
  const other = items.find((item) => !isOne(item));
  if (other !== undefined) throw new InvalidArgumentError(`invalid ${kind} "${other}"`);
  return items;
}
