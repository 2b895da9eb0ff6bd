// The command `import` in the tree. Its modules are imported only when it runs.

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
      "send files of events to a gateway as history: NDJSON, also gzip or zstd; - is standard input. Run again, it goes on behind what is stored",
    )
    .option("--url <url>", "where the gateway is, such as http://127.0.0.1:8000")
    .option("--key <key>", "the API key of the project")
    .addOption(
      new Option("--format <name>", "auto: told by the first lines")
        .choices(formatNames)
        .default("auto"),
    )
    .option("--dry-run", "send nothing: list what would not be stored, line by line", false)
    .option(
      "--allow-loss",
      "exit with 0 although a line, or a part of one, is not stored; default: exit code 1",
      false,
    )
    .option("--strict", "exit code 1 also if an event is stored with a warning of any kind", false)
    .option("--restart", "from the beginning, whatever an earlier run has done", false)
    .option(
      "--state <file>",
      "where it notes how far it is; default: beside the file, as <file>.penstock-import, and for standard input nowhere",
    )
    .option(
      "--same-project",
      "go on although its state says another address or key: it is the same project",
      false,
    )
    .option(
      "--give-up-after <seconds>",
      "end when the gateway has taken nothing for so long; default: never",
      positiveNumber,
    )
    .option(
      "--time-zone <zone>",
      "that of a Mixpanel project whose exports have local times, such as Asia/Kolkata or +05:30; default: UTC",
    )
    .option("--group-type <name>", "of Segment's group calls that do not say theirs", "company")
    .option("--gzip", "compress requests: for a gateway that is far away", false)
    .option(
      "--batch-bytes <number>",
      "how many bytes of lines go into a request",
      positiveBytes,
      batchBytesDefault,
    )
    .option(
      "--line-bytes-max <number>",
      "a longer line is left out",
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
