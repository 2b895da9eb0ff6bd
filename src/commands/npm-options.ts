// Detects options that npm has consumed because no `--` was typed before them, and passes as
// variables. It passes no variable for deprecated options of its own: `--key` and `--only`.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Option } from "commander";
import { shellWord } from "./called-as.ts";

interface Start {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file with which the project's npm scripts start the program, such as `run.mjs`. */
  readonly script: string;
}

/** Ends the program like commander after wrong usage. */
export function refuseNpmOptions(program: Command, { args, env, script }: Start): void {
  const npmScript = env["npm_lifecycle_script"] ?? "";
  // A script of another project may start this program.
  if (!npmScript.split(/[\s/]/).includes(script)) return;
  // An option has arrived, so `--` was typed.
  if (args.some((arg) => arg.startsWith("-"))) return;
  const { command, depth } = commandNamed(program, args);
  const kept = command.options.filter((option) => isKept(option, env));
  if (kept.length === 0) return;
  // npm leaves the value of an option among the arguments.
  const words = args.slice(0, depth + command.registeredArguments.length);
  const isInScript = words[0] !== undefined && npmScript.endsWith(` ${words[0]}`);
  const typed = words.slice(isInScript ? 1 : 0).map(shellWord);
  const shown = [`npm run ${env["npm_lifecycle_event"]} --`, ...typed, ...kept.map(flagsOf)];
  const names = kept.map(({ long }) => long).join(", ");
  command.error(
    `error: npm consumed ${names}: put -- before the options, as in: ${shown.join(" ")}`,
  );
}

/** `depth` is the number of arguments that name the command. */
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
  // npm sets the variable to an empty value for options that are off.
  if ((env[variableOf(name)] ?? "") === "") return false;
  return !isInNpmrc(name, env);
}

function variableOf(name: string): string {
  return `npm_config_${name.replaceAll("-", "_")}`;
}

/** An option in a configuration file of npm was not typed. */
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
    return "";
  }
}

/** Returns the flags without the value, which may be a secret. */
function flagsOf({ flags }: Option): string {
  return flags.replace(/^-\w, /, "");
}
