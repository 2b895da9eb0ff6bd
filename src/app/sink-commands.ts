// The commands of the sinks in the tree: one for each kind of target. Their modules are imported
// only when they run.

import { type Command, InvalidArgumentError } from "commander";
import { createLog } from "../base/log.ts";
import { type CommandContext, CommandError, usageExitCode } from "../cli/context.ts";
import { configOf } from "../cli/settings.ts";
import { type ReadingOptions, readingOf, withReading } from "./sink-reading.ts";

interface PostgresOptions extends ReadingOptions {
  readonly to?: string;
  readonly schema: string;
  readonly ddl: boolean;
}

export function addSinks(program: Command, context: CommandContext): void {
  const sink = program
    .command("sink")
    .description("take events out of the streams into a database, each once");
  addPostgres(sink, context);
  addParquet(sink, context);
}

function addPostgres(sink: Command, context: CommandContext): void {
  withReading(sink.command("postgres").description("into PostgreSQL"), ["sinkTo"])
    .option("--to <url>", "where to write; default: PENSTOCK_SINK_TO")
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
      const target = new PostgresTarget({ url, schema: options.schema });
      await runSink(config, context, { target, ...readingOf(options) });
    });
}

function addParquet(sink: Command, context: CommandContext): void {
  const own = ["sinkFileBytes", "sinkFileSeconds"] as const;
  withReading(sink.command("parquet <folder>").description("into Parquet files"), own).action(
    async (folder: string, options: ReadingOptions, command: Command) => {
      const config = configOf(command, context);
      const { duckdb } = await import("../sinks/parquet/parquet-maker.ts");
      try {
        duckdb();
      } catch (error) {
        throw new CommandError((error as Error).message);
      }
      const { ParquetTarget } = await import("../sinks/parquet/parquet-target.ts");
      const { runSink } = await import("./sink.ts");
      const target = new ParquetTarget({
        folder,
        segmentBytesMax: config.sinkFileBytes,
        segmentAgeMsMax: config.sinkFileSeconds * 1_000,
        log: createLog(config.logLevel),
      });
      await runSink(config, context, { target, ...readingOf(options) });
    },
  );
}

function schemaName(text: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(text))
    throw new InvalidArgumentError("must match [a-z_][a-z0-9_]{0,62}");
  return text;
}
