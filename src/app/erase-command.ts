// `penstock erase` in the tree of commands.

import type { Command } from "commander";
import type { CommandContext } from "../commands/context.ts";
import type { EraseOptions } from "../commands/erase/erase.ts";
import { configOf, natsSettings, withSettings } from "../commands/settings.ts";
import { version } from "./options.ts";

export function addErase(program: Command, context: CommandContext): void {
  withSettings(
    program
      .command("erase <project>")
      .description("remove a person's events from the streams, and the person from the effects"),
    [...natsSettings, "effectsUrl"],
  )
    .option("--distinct-id <id>", "whose; repeatable. The person's other ids go too", added, [])
    .option("--dry-run", "only say what there is", false)
    .option("--yes", "do not ask", false)
    .option("--no-effects", "there is no database of the effects: the given ids alone")
    .option(
      "--allow-behind",
      "erase even if the effects have not applied all events: ids they do not know yet stay",
      false,
    )
    .option(
      "--receipt <file>",
      "write the receipt there; default: penstock-erasure-<id>.json in the folder where this runs",
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
