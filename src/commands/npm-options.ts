// Options that npm has taken for its own because no `--` stood before them. npm hands them to the
// script as variables and not as arguments, and the command would do something else than it was
// told. npm gives no sign of an option that it knows and calls deprecated: `--key` and `--only`.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Option } from "commander";
import { shellWord } from "./called-as.ts";

interface Start {
  /** As the program got them, without Node and the file. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file that the project's npm scripts start the program with, as `run.mjs`. */
  readonly script: string;
}

/** Ends the program as commander does at wrong usage, when npm has kept options of its command. */
export function refuseNpmOptions(program: Command, { args, env, script }: Start): void {
  const npmScript = env["npm_lifecycle_script"] ?? "";
  // A script of another project may start this one, and have options of these names itself.
  if (!npmScript.split(/[\s/]/).includes(script)) return;
  // An option came through, so `--` was typed.
  if (args.some((arg) => arg.startsWith("-"))) return;
  const { command, depth } = commandNamed(program, args);
  const kept = command.options.filter((option) => isKept(option, env));
  if (kept.length === 0) return;
  // npm leaves the value of an option among the arguments, so no more are shown than there are.
  const words = args.slice(0, depth + command.registeredArguments.length);
  const isInScript = words[0] !== undefined && npmScript.endsWith(` ${words[0]}`);
  const typed = words.slice(isInScript ? 1 : 0).map(shellWord);
  const shown = [`npm run ${env["npm_lifecycle_event"]} --`, ...typed, ...kept.map(flagsOf)];
  const names = kept.map(({ long }) => long).join(", ");
  command.error(
    `error: npm has kept ${names} for itself: put -- before the options, as in: ${shown.join(" ")}`,
  );
}

/** The command that the arguments name, and how many of them do so. */
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
  // The variable is empty where something is switched off, and so is a default of npm's.
  if ((env[variableOf(name)] ?? "") === "") return false;
  return !isInNpmrc(name, env);
}

function variableOf(name: string): string {
  return `npm_config_${name.replaceAll("-", "_")}`;
}

/** Whether one of npm's files sets it: then it says nothing of the command line. */
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
    // Most people have none of these files.
    return "";
  }
}

/** Without the value, which may be a secret. */
function flagsOf({ flags }: Option): string {
  return flags.replace(/^-\w, /, "");
}
