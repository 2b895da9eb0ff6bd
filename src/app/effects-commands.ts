// The commands of the effects in the tree: the process that applies what events do, and those that
// read what has come of it. Their modules are imported only when they run.

import { Argument, type Command, InvalidArgumentError } from "commander";
import type { ConfiguredCommand } from "../commands/configured-command.ts";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import type { RebuildCommandOptions } from "../commands/effects/rebuild.ts";
import type { UsageOptions } from "../commands/effects/usage.ts";
import { configOf, natsSettings, withSettings } from "../commands/settings.ts";
import type { SettingName } from "../platform/settings/config.ts";
import { day, instantMs } from "../readers/effects/http/parameters.ts";
import { besideCommand } from "./options.ts";

const databaseAndNats: readonly SettingName[] = [
  ...natsSettings.filter((name) => name !== "hubDomain" && name !== "replicas"),
  "effectsUrl",
  "effectsLargeBytesMax",
];
const processSettings: readonly SettingName[] = [
  ...databaseAndNats,
  "effectsHost",
  "effectsPort",
  "logLevel",
];

export function addEffects(program: Command, context: CommandContext): void {
  const effects = program
    .command("effects")
    .description("apply what stored events do to people, groups and usage");
  withSettings(
    effects
      .command("run", { isDefault: true })
      .description("apply events as they are stored, and show what comes of it over HTTP"),
    processSettings,
  )
    .option(
      "--accept-expired",
      "go on behind events that left their stream before they were applied; where an older copy of a stream leaves open which were applied, apply all of it",
      false,
    )
    // What stands behind `effects` and is no command of it comes here, to the default one.
    .allowExcessArguments(true)
    .action(async (options: { acceptExpired: boolean }, command: Command) => {
      refuseWords(command.args, effects);
      const { runEffects } = await import("./effects.ts");
      await runEffects(configOf(command, context), context, options);
    });
  effects.command(besideCommand, { hidden: true }).action(async () => {
    const { runBeside } = await import("./effects-beside.ts");
    await runBeside(context);
  });
  withDatabase(
    effects.command("status").description("how far events are applied, and what could not be"),
  ).action(async (options: { json: boolean }, command: Command) => {
    const { status } = await import("../commands/effects/status.ts");
    await status(commandOf(command, context), options.json);
  });
  addRebuilding(effects, context);
}

function refuseWords([word]: readonly string[], effects: Command): void {
  if (word === undefined) return;
  const names = effects.commands.map((one) => one.name()).filter((name) => name !== besideCommand);
  const message = `there is no command effects ${word}: there are ${names.join(", ")}`;
  throw new CommandError(message, usageExitCode);
}

function addRebuilding(effects: Command, context: CommandContext): void {
  withMissing(
    withSettings(
      effects
        .command("rebuild")
        .description("build the database again from the streams, while `penstock effects` is down"),
      databaseAndNats,
    ),
  )
    .option("--into <url>", "make another database, as in PENSTOCK_EFFECTS_URL, and leave this one")
    .action(async (options: RebuildCommandOptions, command: Command) => {
      const { rebuildEffects } = await import("../commands/effects/rebuild.ts");
      await rebuildEffects(commandOf(command, context), options);
    });
  withMissing(
    withDatabase(
      effects
        .command("verify")
        .description("compare the database with one built from the streams; changes nothing"),
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
      .description("who a distinct id or a person's uuid is; links: why its ids are one person"),
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
    program.command("group <project> <type> <key>").description("what is known of a group"),
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
      .description("what a project's events come to, day by day: this bills, each event once"),
  )
    .option("--from <day>", "the first day, such as 2026-11-22; default: 30 days", parsed(day))
    .option("--to <day>", "the last day; default: today", parsed(day))
    .option("--export", "closed days as CloudEvents, a line each, for a billing system", false)
    .option("--source <uri>", "the installation, in the lines of --export", "penstock")
    .option(
      "--unchecked",
      "export by the clock alone, where NATS cannot say what is applied",
      false,
    )
    .option("--revision <number>", "above 1 to export the same days anew", parsed(revision), 1)
    .action(async (project: string, options: UsageOptions, command: Command) => {
      const { usage } = await import("../commands/effects/usage.ts");
      await usage(commandOf(command, context), project, options);
    });
  withDatabase(
    program
      .command("spikes <project>")
      .description("when a project, or one distinct id, sent more than usual"),
  )
    .option("--from <time>", "only those that began since, as 2026-11-22", parsed(instantMs), 0)
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

/** What reads the database asks NATS too, for how far it is behind. */
function withDatabase(command: Command): Command {
  return withJson(withSettings(command, databaseAndNats));
}

function withMissing(command: Command): Command {
  return command.option(
    "--accept-missing",
    "go on without events that have left the streams: what they did will be gone",
    false,
  );
}

function withJson(command: Command): Command {
  return command.option("--json", "as JSON", false);
}

/** What is wrong with an option's value ends the command as wrong usage. */
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
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error("must be a whole number from 1 on");
  return Number(text);
}
