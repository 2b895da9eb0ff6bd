// The commands of the sinks in the tree: one for each kind of target. Their modules are imported
// only when they run.

import { type Command, InvalidArgumentError } from "commander";
import { isProjectId } from "../base/forms.ts";
import type { Lane } from "../base/types.ts";
import { type CommandContext, CommandError, usageExitCode } from "../cli/context.ts";
import { configOf, natsSettings, withSettings } from "../cli/settings.ts";
import { lanes } from "../nats/names.ts";
import type { SettingName } from "../settings/config.ts";

const processSettings: readonly SettingName[] = [
  ...natsSettings.filter((name) => name !== "hubDomain" && name !== "replicas"),
  ...(["sinkTo", "sinkHost", "sinkPort"] as const),
  ...(["sinkBatchEvents", "sinkBatchBytes", "sinkBatchAgeMs", "logLevel"] as const),
];

interface SinkOptions {
  readonly to?: string;
  readonly projects?: string[];
  readonly lanes?: Lane[];
  readonly acceptExpired: boolean;
}

interface PostgresOptions extends SinkOptions {
  readonly schema: string;
  readonly ddl: boolean;
}

export function addSinks(program: Command, context: CommandContext): void {
  const sink = program
    .command("sink")
    .description("take events out of the streams into a database, each once");
  withReading(sink.command("postgres").description("into PostgreSQL"))
    .option("--schema <name>", "where its tables are", schemaName, "penstock")
    .option("--ddl", "print the tables, and end", false)
    .action(async (options: PostgresOptions, command: Command) => {
      if (options.ddl) {
        const { ddl } = await import("../sinks/postgres/tables.ts");
        context.stdout.write(ddl(options.schema));
        return;
      }
      const config = configOf(command, context);
      const url = options.to ?? config.sinkTo;
      if (url === undefined)
        throw new CommandError(
          "say where to write: --to postgres://user@host/database, or PENSTOCK_SINK_TO",
          usageExitCode,
        );
      const { PostgresTarget } = await import("../sinks/postgres/postgres-target.ts");
      const { runSink } = await import("./sink.ts");
      const { projects, lanes: wanted, acceptExpired, schema } = options;
      const target = new PostgresTarget({ url, schema });
      await runSink(config, context, { target, projects, lanes: wanted, acceptExpired });
    });
}

/** The options of every sink. */
function withReading(command: Command): Command {
  return withSettings(command, processSettings)
    .option("--to <url>", "where to write; default: PENSTOCK_SINK_TO")
    .option("--projects <ids>", "only events of these, with commas between", (ids: string) =>
      listOf(ids, isProjectId),
    )
    .option("--lanes <lanes>", `only these of ${lanes.join(",")}`, (names: string) =>
      listOf(names, (name) => lanes.some((lane) => lane === name)),
    )
    .option(
      "--accept-expired",
      "go on behind events that left their stream before they were written",
      false,
    );
}

function listOf(text: string, isOne: (item: string) => boolean): string[] {
  const items = text.split(",");
  const other = items.find((item) => !isOne(item));
  if (other !== undefined) throw new InvalidArgumentError(`"${other}" is none`);
  return items;
}

function schemaName(text: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(text))
    throw new InvalidArgumentError("must match [a-z_][a-z0-9_]{0,62}");
  return text;
}
