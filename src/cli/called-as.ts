// Builds the command line with which a person calls this program again from the folder where it was
// started. A bundle has a launcher and no npm. A checkout has npm, which runs its scripts in the
// checkout's folder wherever npm was called.

import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

interface Start {
  /** `main.js` of a bundle or checkout. */
  readonly mainFile: string;
  readonly workingFolder: string;
  /** The folder that npm was called in, its INIT_CWD; undefined without npm. */
  readonly npmFolder: string | undefined;
}

/**
 * The command line that starts this program, quoted for a shell. The name of a command and its
 * flags can be put behind it.
 */
export function calledAs({ mainFile, workingFolder, npmFolder }: Start): string {
  const root = dirname(dirname(mainFile));
  const launcher = join(root, "bin", "penstock");
  if (existsSync(launcher)) return shellWord(launcher);
  if (resolve(workingFolder) !== root) return `node ${shellWord(join(root, "scripts", "run.mjs"))}`;
  const isWithin = npmFolder === undefined || !relative(root, npmFolder).startsWith("..");
  return isWithin ? "npm run penstock --" : `npm --prefix ${shellWord(root)} run penstock --`;
}

export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
