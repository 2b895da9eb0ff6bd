import type { Command } from "commander";
import type { CommandContext } from "../commands/context.ts";
import type { EraseOptions } from "../commands/erase/erase.ts";
import { configOf, natsSettings, withSettings } from "../commands/settings.ts";
import { version } from "./options.ts";

export function addErase(program: Command, context: CommandContext): void {
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
      added,
      [],
    )
    .option("--dry-run", "only count what would be erased", false)
    .option("--yes", "do not ask for confirmation", false)
    .option("--no-effects", "erase the given ids only, if there is no effects database")
    .option(
      "--allow-behind",
      "erase even if the effects have not applied all events; ids that they do not know yet stay",
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

function added(id: string, before: readonly string[]): readonly string[] {
  return [...before, id];
}
