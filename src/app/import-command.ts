import { type Command, Option } from "commander";
import type { CommandContext } from "../commands/context.ts";
import { formatNames } from "../commands/import/formats/detect.ts";
import type { ImportOptions } from "../commands/import/import.ts";
import { positiveNumber } from "./options.ts";

const batchBytesDefault = 4_194_304;
const lineBytesMaxDefault = 8_388_608;

export function addImport(program: Command, context: CommandContext): void {
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
      "file of the progress; default: <file>.penstock-import; none for standard input",
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
    .option("--gzip", "compress requests, for a gateway with a slow connection", false)
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
