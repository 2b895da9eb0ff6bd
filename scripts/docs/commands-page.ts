// docs/reference/commands.md, from the tree of commands. Flags of settings are told in settings.md,
// and only named here.

import type { Argument, Command, Option } from "commander";
import { commandLine } from "../../src/app/command-line.ts";
import type { CommandContext } from "../../src/commands/context.ts";
import { allSettings } from "../../src/commands/settings.ts";
import { flagOf } from "../../src/platform/settings/config.ts";
import { generatedFrom, marked, sentence } from "./words.ts";

const introduction = `# Commands

${generatedFrom("src/app/command-line.ts")}

In a checkout it is \`./penstock <command>\`, in [a bundle](../../deploy/README.md#the-bundle) \`bin/penstock <command>\`. \`--help\` behind any of them prints what this page has, and \`--version\` the version.

Exit codes: 0 well; 1 failed; 2 wrong usage: an argument, a flag or a setting that cannot be, said before anything is done. A command that SIGINT or SIGTERM ends in order ends with 0; an export or import that is not through, with 1.`;

const settingFlags = new Set(allSettings.map(flagOf));

export function commandsPage(): string {
  // The tree is only read: no command runs, so none needs what a context lends.
  const program = commandLine({} as CommandContext);
  return `${introduction}\n\n${sectionsOf(program, []).join("\n\n")}\n`;
}

/** The sections of all commands below one, but for hidden ones and `help`. */
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
