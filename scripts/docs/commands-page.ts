// docs/reference/commands.md, from the tree of commands. settings.md describes the flags of settings;
// this page only lists them.

import type { Argument, Command, Option } from "commander";
import { commandLine } from "../../src/app/command-line.ts";
import type { CommandContext } from "../../src/commands/context.ts";
import { allSettings } from "../../src/commands/settings.ts";
import { flagOf } from "../../src/platform/settings/config.ts";
import { generatedFrom, marked, sentence } from "./words.ts";

const introduction = `# Commands

${generatedFrom("src/app/command-line.ts")}

In a checkout, run \`./penstock <command>\`; in [a bundle](../../deploy/README.md#the-bundle), \`bin/penstock <command>\`. Every command takes \`--help\`. \`--version\` prints the version.

| Exit code | Meaning |
|---|---|
| 0 | success, also after an orderly stop by SIGINT, SIGTERM or SIGHUP |
| 1 | failure, also an export or import that was stopped before its end |
| 2 | wrong usage: an invalid argument, flag or setting; nothing was done |`;

const settingFlags = new Set(allSettings.map(flagOf));

export function commandsPage(): string {
  // The tree is only read. No command runs, so none needs its context.
  const program = commandLine({} as CommandContext);
  return `${introduction}\n\n${sectionsOf(program, []).join("\n\n")}\n`;
}

/** The sections of all subcommands of a command, except hidden ones and `help`. */
function sectionsOf(command: Command, above: readonly string[]): string[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== "help");
  return below.flatMap((one) => {
    const names = [...above, one.name()];
    return [sectionText(one, names), ...sectionsOf(one, names)];
  });
}

function sectionText(command: Command, names: readonly string[]): string {
  const shown = command.registeredArguments.map(argumentText);
  const own = command.options.filter(({ long }) => !settingFlags.has(long ?? ""));
  const taken = command.options.filter(({ long }) => settingFlags.has(long ?? ""));
  const parts = [
    `${"#".repeat(names.length + 1)} ${names.join(" ")}`,
    sentence(command.description()),
  ];
  if (command.commands.length === 0) {
    const usage = ["penstock", ...names, "[options]", ...shown].join(" ");
    parts.push(`\`\`\`text\n${usage}\n\`\`\``);
  }
  if (own.length > 0) parts.push(`| Option | |\n|---|---|\n${own.map(optionRow).join("\n")}`);
  if (taken.length > 0) parts.push(settingsText(taken));
  return parts.join("\n\n");
}

function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function optionRow({ flags, description, argChoices }: Option): string {
  const choices = argChoices === undefined ? "" : ` (${argChoices.join(", ")})`;
  return `| \`${flags.replaceAll("|", "\\|")}\` | ${marked(description)}${choices} |`;
}

function settingsText(taken: readonly Option[]): string {
  if (taken.length === settingFlags.size) return "It takes every [setting](settings.md) as a flag.";
  const flags = taken.map(({ long }) => `\`${long}\``).join(", ");
  return `It takes these [settings](settings.md) as flags: ${flags}.`;
}
