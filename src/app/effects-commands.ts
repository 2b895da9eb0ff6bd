import { Argument, type Command, InvalidArgumentError } from "commander";
import {
  type CommandContext,
  CommandError,
  type ConfiguredCommand,
  usageExitCode,
} from "../commands/context.ts";
import type { RebuildCommandOptions } from "../commands/effects/rebuild.ts";
import type { UsageOptions } from "../commands/effects/usage.ts";
import {
  configOf,
  readerNatsSettings,
  readerProcessSettings,
  withSettings,
} from "../commands/settings.ts";
import type { SettingName } from "../platform/settings/config.ts";
import { day, instantMs } from "../readers/effects/http/parameters.ts";
import { childCommand } from "./options.ts";

const databaseAndNats: readonly SettingName[] = [
  ...readerNatsSettings,
  "effectsUrl",
  "effectsLargeBytesMax",
];
const processSettings: readonly SettingName[] = [
  ...databaseAndNats,
  "effectsHost",
  "effectsPort",
  ...readerProcessSettings,
];

export const acceptExpiredHelp =
  "continue even if events left their stream before they were applied; if a stream was restored from an older copy, apply its events again";

export function addEffects(program: Command, context: CommandContext): void {
  const effects = program
    .command("effects")
    .description("apply stored events to people, groups and usage");
  withSettings(
    effects
      .command("run", { isDefault: true })
      .description("apply events as they are stored, and serve the results over HTTP"),
    processSettings,
  )
    .option("--accept-expired", acceptExpiredHelp, false)
    .allowExcessArguments(true)
    .action(async (options: { acceptExpired: boolean }, command: Command) => {
      refuseWords(command.args, effects);
      const { runEffects } = await import("./effects.ts");
      await runEffects(configOf(command, context), context, options);
    });
  effects.command(childCommand, { hidden: true }).action(async () => {
    const { runEffectsChild } = await import("./effects-child.ts");
    await runEffectsChild(context);
  });
  withDatabase(
    effects.command("status").description("show which events are applied, and which were rejected"),
  ).action(async (options: { json: boolean }, command: Command) => {
    const { status } = await import("../commands/effects/status.ts");
    await status(commandOf(command, context), options.json);
  });
  addRebuilding(effects, context);
}

function refuseWords([word]: readonly string[], effects: Command): void {
  if (word === undefined) return;
  const names = effects.commands.map((one) => one.name()).filter((name) => name !== childCommand);
  const message = `unknown command effects ${word}: the commands are ${names.join(", ")}`;
  throw new CommandError(message, usageExitCode);
}

function addRebuilding(effects: Command, context: CommandContext): void {
  withMissing(
    withSettings(
      effects
        .command("rebuild")
        .description("rebuild the database from the streams; stop `penstock effects` first"),
      databaseAndNats,
    ),
  )
    .option(
      "--into <url>",
      "build a new database at this URL, as in PENSTOCK_EFFECTS_URL, and leave the current one unchanged",
    )
    .action(async (options: RebuildCommandOptions, command: Command) => {
      const { rebuildEffects } = await import("../commands/effects/rebuild.ts");
      await rebuildEffects(commandOf(command, context), options);
    });
  withMissing(
    withDatabase(
      effects
        .command("verify")
        .description(
          "compare the database with a database that is built from the streams; changes nothing",
        ),
    ),
  ).action(async (options: { json: boolean; acceptMissing: boolean }, command: Command) => {
    const { verifyEffects } = await import("../commands/effects/rebuild.ts");
    await verifyEffects(commandOf(command, context), options);
  });
}

export function addEffectsReading(program: Command, context: CommandContext): void {
  withDatabase(
    program
      .command("person <project> <id>")
      .description(
        "show the person of a distinct id or uuid; with links, also the links that merged its ids",
      ),
  )
    .addArgument(new Argument("[what]", "links").choices(["links"]))
    .action(
      async (
        project: string,
        id: string,
        what: "links" | undefined,
        { json }: { json: boolean },
        command: Command,
      ) => {
        const { links, person } = await import("../commands/effects/person.ts");
        const show = what === "links" ? links : person;
        await show(commandOf(command, context), { project, id, json });
      },
    );
  withDatabase(
    program.command("group <project> <type> <key>").description("show the properties of a group"),
  ).action(
    async (
      project: string,
      type: string,
      key: string,
      { json }: { json: boolean },
      command: Command,
    ) => {
      const { group } = await import("../commands/effects/person.ts");
      await group(commandOf(command, context), { project, type, key, json });
    },
  );
  addCounts(program, context);
}

function addCounts(program: Command, context: CommandContext): void {
  withDatabase(
    program
      .command("usage <project>")
      .description("show the billable events of a project per day; each event counts once"),
  )
    .option(
      "--from <day>",
      "first day, such as 2026-11-22; default: 30 days before --to",
      parsed(day),
    )
    .option("--to <day>", "last day; default: today", parsed(day))
    .option(
      "--export",
      "print closed days as CloudEvents, one per line, for a billing system",
      false,
    )
    .option("--source <uri>", "name of the installation in the lines of --export", "penstock")
    .option(
      "--unchecked",
      "treat all past days as closed, without asking NATS whether all their events are applied",
      false,
    )
    .option(
      "--revision <number>",
      "revision of the export; use a number above 1 to export the same days again",
      parsed(revision),
      1,
    )
    .action(async (project: string, options: UsageOptions, command: Command) => {
      const { usage } = await import("../commands/effects/usage.ts");
      await usage(commandOf(command, context), project, options);
    });
  withDatabase(
    program
      .command("spikes <project>")
      .description("list the periods in which a project or a distinct id sent more than usual"),
  )
    .option(
      "--from <time>",
      "only spikes that began at or after this time, such as 2026-11-22",
      parsed(instantMs),
      0,
    )
    .action(
      async (
        project: string,
        { from, json }: { from: number; json: boolean },
        command: Command,
      ) => {
        const { spikes } = await import("../commands/effects/usage.ts");
        await spikes(commandOf(command, context), project, { fromMs: from, json });
      },
    );
}

function commandOf(command: Command, context: CommandContext): ConfiguredCommand {
  return { config: configOf(command, context), context };
}

function withDatabase(command: Command): Command {
  return withSettings(command, databaseAndNats).option("--json", "print JSON", false);
}

function withMissing(command: Command): Command {
  return command.option(
    "--accept-missing",
    "continue even if events have left the streams; their effects will be missing",
    false,
  );
}

function parsed<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  };
}

function revision(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error("must be a whole number of at least 1");
  return Number(text);
}
