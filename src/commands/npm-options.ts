// Detects options that npm has consumed because no `--` was typed before them. npm passes them to
// the script as variables instead of arguments, so the command would run without them. npm passes
// no variable for an option that it knows as deprecated: `--key` and `--only`.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Option } from "commander";
import { shellWord } from "./called-as.ts";

interface Start {
  /** The arguments without Node and the main file. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file with which the project's npm scripts start the program, such as `run.mjs`. */
  readonly script: string;
}

/**
 * Ends the program if npm has consumed options of its command, with the error that commander shows
 * for wrong usage.
 */
export function refuseNpmOptions(program: Command, { args, env, script }: Start): void {
  const npmScript = env["npm_lifecycle_script"] ?? "";
  // A script of another project may start this program, and have options of the same names.
  if (!npmScript.split(/[\s/]/).includes(script)) return;
  // An option has arrived, so `--` was typed.
  if (args.some((arg) => arg.startsWith("-"))) return;
  const { command, depth } = commandNamed(program, args);
  const kept = command.options.filter((option) => isKept(option, env));
  if (kept.length === 0) return;
  // npm leaves the value of an option among the arguments. So the number of shown words is limited
  // to the number of arguments of the command.
  const words = args.slice(0, depth + command.registeredArguments.length);
  const isInScript = words[0] !== undefined && npmScript.endsWith(` ${words[0]}`);
  const typed = words.slice(isInScript ? 1 : 0).map(shellWord);
  const shown = [`npm run ${env["npm_lifecycle_event"]} --`, ...typed, ...kept.map(flagsOf)];
  const names = kept.map(({ long }) => long).join(", ");
  command.error(
    `error: npm consumed ${names}: put -- before the options, as in: ${shown.join(" ")}`,
  );
}

/** Returns the command that the arguments name, and the number of arguments that name it. */
function commandNamed(program: Command, args: readonly string[]) {
  let command = program;
  let depth = 0;
  for (const arg of args) {
    const next = command.commands.find(
      (known) => known.name() === arg || known.aliases().includes(arg),
    );
    if (next === undefined) break;
    command = next;
    depth++;
  }
  return { command, depth };
}

function isKept({ long }: Option, env: Start["env"]): boolean {
  const name = long?.slice("--".length) ?? "";
  // npm sets the variable to an empty value for options that are off, including its own defaults.
  if ((env[variableOf(name)] ?? "") === "") return false;
  return !isInNpmrc(name, env);
}

function variableOf(name: string): string {
  return `npm_config_${name.replaceAll("-", "_")}`;
}

/**
 * Returns whether a configuration file of npm sets the option, so that the option was not typed.
 */
function isInNpmrc(name: string, env: Start["env"]): boolean {
  const folder = env["npm_config_local_prefix"];
  const files = [
    folder === undefined ? undefined : join(folder, ".npmrc"),
    env["npm_config_userconfig"],
    env["npm_config_globalconfig"],
  ];
  const line = new RegExp(`^[ \\t]*"?${name}"?[ \\t]*(=|$)`, "m");
  return files.some((file) => file !== undefined && line.test(textOf(file)));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // Usually none of these files exists.
    return "";
  }
}

/** Returns the flags of an option without its value, which may be a secret. */
function flagsOf({ flags }: Option): string {
  return flags.replace(/^-\w, /, "");
}
