// The commands for rejected events. Their modules are imported when they run.

import { type Command, Option } from "commander";
import type { CommandContext, ConfiguredCommand } from "../commands/context.ts";
import type { ListOptions, PurgeOptions } from "../commands/rejected/rejected.ts";
import type { ReplayOptions } from "../commands/rejected/replay.ts";
import { configOf, natsSettings, withSettings } from "../commands/settings.ts";
import { itemErrorCodes } from "../platform/base/errors.ts";
import { dropTable } from "../platform/base/warnings.ts";
import { positiveInteger, positiveNumber } from "./options.ts";

const reasons = [...Object.keys(dropTable), ...itemErrorCodes, "rule", "schema"];
const shownDefault = 50;
const giveUpSecondsDefault = 60;

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value];
}

function withFilters(command: Command): Command {
  return withSettings(command, natsSettings)
    .option("--project <id>", "only events of this project")
    .addOption(new Option("--reason <code>", "only events with this reason").choices(reasons))
    .option("--rule <name>", "only events that this rule, or the schema of this event, quarantined")
    .option("--event <name>", "only events with this name")
    .option(
      "--since <time>",
      "only events received at or after this day or time (UTC), or this long ago, such as 24h",
    )
    .option(
      "--until <time>",
      "only events received before this day or time (UTC), or this long ago",
    );
}

export function addRejected(program: Command, context: CommandContext): void {
  const rejected = program
    .command("rejected")
    .description("list, show, replay and remove rejected events");
  rejected.showSuggestionAfterError(false);
  const of = (command: Command): ConfiguredCommand => ({
    config: configOf(command, context),
    context,
  });
  withFilters(rejected.command("list").description("list rejected events, newest last"))
    .option("--limit <count>", "maximum number of listed events", positiveInteger, shownDefault)
    .option("--json", "print JSON", false)
    .action(async (options: ListOptions, command: Command) => {
      const { list } = await import("../commands/rejected/rejected.ts");
      await list(of(command), options);
    });
  withSettings(
    rejected
      .command("show <id>")
      .description("print a rejected event as the client sent it, and why it was rejected"),
    natsSettings,
  )
    .option("--json", "print JSON", false)
    .action(async (id: string, options: { json: boolean }, command: Command) => {
      const { show } = await import("../commands/rejected/rejected.ts");
      await show(of(command), id, options);
    });
  withFilters(
    rejected
      .command("replay [id...]")
      .description(
        "send rejected events to a gateway again, and remove the stored ones; without ids, all that the filters select",
      ),
  )
    .option(
      "--url <url>",
      "URL of the gateway, such as http://127.0.0.1:8000; default: the gateway on the data folder",
    )
    .option(
      "--set <path=value>",
      "set a member before sending, such as properties.total=5 (repeatable); a value that is not JSON is text",
      collect,
      [],
    )
    .option("--remove <path>", "remove a member before sending (repeatable)", collect, [])
    .option("--dry-run", "only check which events would be valid", false)
    .option("--yes", "do not ask for confirmation", false)
    .option(
      "--give-up-after <seconds>",
      "exit if the gateway accepts nothing for this long",
      positiveNumber,
      giveUpSecondsDefault,
    )
    .action(async (ids: string[], options: ReplayOptions, command: Command) => {
      const { replay } = await import("../commands/rejected/replay.ts");
      await replay(of(command), ids, options);
    });
  withFilters(
    rejected
      .command("purge [id...]")
      .description("remove rejected events; without ids, all that the filters select"),
  )
    .option("--dry-run", "only count what would be removed", false)
    .option("--yes", "do not ask for confirmation", false)
    .action(async (ids: string[], options: PurgeOptions, command: Command) => {
      const { purge } = await import("../commands/rejected/rejected.ts");
      await purge(of(command), ids, options);
    });
}
