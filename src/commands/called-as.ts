// Detects how this program was started: its launcher, and options that npm has removed.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command, Option } from "commander";

interface Start {
  readonly mainFile: string;
  readonly workingFolder: string;
  readonly npmFolder: string | undefined;
}

/** Returns the shell command that starts this program again. */
export function calledAs({ mainFile, workingFolder, npmFolder }: Start): string {
  const root = dirname(dirname(mainFile));
  const bundled = join(root, "bin", "penstock");
  if (existsSync(bundled)) return shellWord(bundled);
  // npm runs its scripts in the folder of the checkout, even if npm was called in another folder.
  const isInRoot = resolve(npmFolder ?? workingFolder) === root;
  return isInRoot ? "./penstock" : shellWord(join(root, "penstock"));
}

export function isDefaultDataDir(dataDir: string, mainFile: string): boolean {
  const root = dirname(dirname(mainFile));
  // In a checkout, the default data folder is in the checkout. With the npm package, it is in the
  // working folder.
  return existsSync(join(root, "penstock"))
    ? resolve(dataDir) === join(root, "data")
    : dataDir === "./data";
}

export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

interface NpmRun {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly script: string;
}

/** Rejects options that npm has removed, because the command would run without them. */
export function refuseNpmOptions(program: Command, { args, env, script }: NpmRun): void {
  const npmScript = env["npm_lifecycle_script"] ?? "";
  if (!npmScript.split(/[\s/]/).includes(script)) return;
  // Options are only passed to the program if the user has typed `--` before them.
  if (args.some((arg) => arg.startsWith("-"))) return;
  const { command, depth } = commandNamed(program, args);
  const kept = command.options.filter((option) => isKept(option, env));
  if (kept.length === 0) return;
  const words = args.slice(0, depth + command.registeredArguments.length);
  const isInScript = words[0] !== undefined && npmScript.endsWith(` ${words[0]}`);
  const typed = words.slice(isInScript ? 1 : 0).map(shellWord);
  const shown = [`npm run ${env["npm_lifecycle_event"]} --`, ...typed, ...kept.map(flagsOf)];
  const names = kept.map(({ long }) => long).join(", ");
  command.error(
    `error: npm consumed ${names}: put -- before the options, as in: ${shown.join(" ")}`,
  );
}

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

function isKept({ long }: Option, env: NpmRun["env"]): boolean {
  const name = long?.slice("--".length) ?? "";
  // For an option that is off, npm sets the variable to an empty value.
  if ((env[npmVariableOf(name)] ?? "") === "") return false;
  return !isInNpmrc(name, env);
}

function npmVariableOf(name: string): string {
  return `npm_config_${name.replaceAll("-", "_")}`;
}

function isInNpmrc(name: string, env: NpmRun["env"]): boolean {
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

/** Returns the flag without its value, because the value may be a secret. */
function flagsOf({ flags }: Option): string {
  return flags.replace(/^-\w, /, "");
}
