// How a person calls this program again from where it was started: a bundle has a launcher and no
// npm, a checkout has npm, whose scripts run in the checkout wherever npm was called.

import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

export interface Start {
  /** `main.js` of a bundle or checkout. */
  readonly mainFile: string;
  readonly workingFolder: string;
  /** Where npm was called, if it was: its INIT_CWD. */
  readonly npmFolder: string | undefined;
}

/**
 * A command line, quoted for a shell, that the name of a command and its flags can be put behind.
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
