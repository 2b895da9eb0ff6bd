// How this program was started: its launcher, and options that npm has consumed.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";

interface Start {
  readonly mainFile: string;
  readonly workingFolder: string;
  /** npm's INIT_CWD, the folder in which it was called; undefined if npm was not used. */
  readonly npmFolder: string | undefined;
}

/** Returns the command that starts this program again, quoted for a shell. */
export function calledAs({ mainFile, workingFolder, npmFolder }: Start): string {
  const root = dirname(dirname(mainFile));
  const bundled = join(root, "bin", "penstock");
  if (existsSync(bundled)) return shellWord(bundled);
  // npm runs its scripts in the clone, wherever it was called.
  const isInRoot = resolve(npmFolder ?? workingFolder) === root;
  return isInRoot ? "./penstock" : shellWord(join(root, "penstock"));
}

/** Returns whether the program, started by `calledAs`, uses this data folder by default. */
export function isDefaultDataDir(dataDir: string, mainFile: string): boolean {
  const root = dirname(dirname(mainFile));
  // The launcher of a checkout uses the data folder of the checkout, that of a bundle the one in
  // the working folder.
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
  /** The file with which the project's npm scripts start the program, such as `run.mjs`. */
  readonly file: string;
}

/** Rejects options that npm has consumed, because the command would run without them. */
export function refuseNpmOptions(program: Command, { args, env, file }: NpmRun): void {
  // The npm script may belong to another project that starts this program.
  if (!(env["npm_lifecycle_script"] ?? "").split(/[\s/]/).includes(file)) return;
  // An option that has arrived shows that `--` was typed.
  if (args.some((arg) => arg.startsWith("-"))) return;
  const command = commandNamed(program, args);
  // npm sets the variable to an empty value for options that are off.
  const consumed = command.options.filter(
    ({ long }) => (env[`npm_config_${long?.slice(2).replaceAll("-", "_")}`] ?? "") !== "",
  );
  if (consumed.length === 0) return;
  const names = consumed.map(({ long }) => long).join(", ");
  const script = `npm run ${env["npm_lifecycle_event"]}`;
  command.error(`error: npm consumed ${names}: put -- after ${script}, as in: ${script} -- …`);
}

function commandNamed(program: Command, [name, ...rest]: readonly string[]): Command {
  const next = program.commands.find(
    (known) => known.name() === name || known.aliases().includes(name ?? ""),
  );
  return next === undefined ? program : commandNamed(next, rest);
}
