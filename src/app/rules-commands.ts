import type { Command } from "commander";
import {
  type CommandContext,
  CommandError,
  type ConfiguredCommand,
  usageExitCode,
} from "../commands/context.ts";
import type { ApplyOptions } from "../commands/rules/rules.ts";
import { configOf, natsSettings, withSettings } from "../commands/settings.ts";
import { dayMs } from "../platform/base/day.ts";
import { duration, wholeNumber } from "./options.ts";

const yesHelp = "do not ask for confirmation if rules, schemas or privacy are removed";

// Imports the modules that serve only when they run, because other commands need no YAML.
export function addRules(program: Command, context: CommandContext): void {
  const rules = program
    .command("rules")
    .description(
      "check and apply the rules of a project: what gateways drop, sample, change or quarantine before an event is stored",
    );
  rules.showSuggestionAfterError(false);
  const of = (command: Command): ConfiguredCommand => ({
    config: configOf(command, context),
    context,
  });
  const commands = () => import("../commands/rules/rules.ts");
  withSettings(
    rules
      .command("check <file>")
      .description("check a rules file; - is standard input. Changes nothing"),
    natsSettings,
  )
    .option(
      "--against <duration>",
      "also apply it to the events stored in this time, such as 24h, and print what each rule would do",
      duration,
    )
    .option("--project <id>", "the project whose events --against reads")
    .option("--json", "print JSON", false)
    .action(
      async (
        file: string,
        { against, project, json }: { against?: number; project?: string; json: boolean },
        command: Command,
      ) => {
        if (against === undefined && project !== undefined)
          throw new CommandError(
            "rules check: --project needs --against with a duration such as 24h: the events that the check reads",
            usageExitCode,
          );
        if (against === undefined) return await (await commands()).check(of(command), file, json);
        const { checkAgainst } = await import("../commands/rules/against.ts");
        await checkAgainst(of(command), file, { project, ageMs: against, json });
      },
    );
  withSettings(
    rules
      .command("apply <project> <file>")
      .description(
        "use a rules file for a project, as a new version in place of the one in use; prints what changes",
      ),
    natsSettings,
  )
    .option(
      "--if-version <number>",
      "fail if another version is in use, such as after a change by someone else; 0: no rules",
      wholeNumber,
    )
    .option("--yes", yesHelp, false)
    .action(async (id: string, file: string, options: ApplyOptions, command: Command) => {
      await (await commands()).apply(of(command), id, file, options);
    });
  withSettings(
    rules
      .command("show <project> [version]")
      .description(
        "print the rules file of a project as it was written; default: the version in use",
      ),
    natsSettings,
  )
    .option("--json", "print JSON, with author and time", false)
    .action(
      async (
        id: string,
        version: string | undefined,
        options: { json: boolean },
        command: Command,
      ) => {
        await (await commands()).show(of(command), id, { version, ...options });
      },
    );
  withSettings(
    rules
      .command("diff <project> [version-or-file] [version]")
      .description(
        "print the changed lines: between the version before and the one in use, between a version or a file and the one in use, or between two versions",
      ),
    natsSettings,
  ).action(
    async (
      id: string,
      first: string | undefined,
      second: string | undefined,
      _,
      command: Command,
    ) => {
      await (await commands()).diff(of(command), id, [first, second]);
    },
  );
  withSettings(
    rules.command("history <project>").description("list the stored versions, the newest first"),
    natsSettings,
  )
    .option("--json", "print JSON", false)
    .action(async (id: string, options: { json: boolean }, command: Command) => {
      await (await commands()).history(of(command), id, options.json);
    });
  withSettings(
    rules
      .command("rollback <project> <version>")
      .description("use the text of an earlier version again, as a new version"),
    natsSettings,
  )
    .option("--yes", yesHelp, false)
    .action(async (id: string, version: string, { yes }: { yes: boolean }, command: Command) => {
      await (await commands()).rollback(of(command), id, { version, yes });
    });
  addSchema(rules, of);
}

function addSchema(rules: Command, of: (command: Command) => ConfiguredCommand): void {
  const schema = rules
    .command("schema")
    .description("propose schemas of events from stored events, and write their types");
  schema.showSuggestionAfterError(false);
  const commands = () => import("../commands/rules/schema.ts");
  withSettings(
    schema
      .command("learn <project>")
      .description(
        "print a rules file with a proposed schema of an event, from its stored events; it has no values of free text",
      ),
    natsSettings,
  )
    .requiredOption("--event <name>", "name of the event")
    .option("--since <duration>", "maximum age of an event, such as 12h; default: 24h", duration)
    .action(async (id: string, options: { event: string; since?: number }, command: Command) => {
      const { event, since: sinceMs = dayMs } = options;
      await (await commands()).learn(of(command), id, { event, sinceMs });
    });
  withSettings(
    schema
      .command("types <project>")
      .description(
        "print TypeScript types of the events that have a schema, for capture of posthog-js and posthog-node",
      ),
    natsSettings,
  ).action(async (id: string, _, command: Command) => {
    await (await commands()).types(of(command), id);
  });
}
