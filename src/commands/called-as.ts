// How this program was started: its launcher, and options that npm has consumed.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

interface Start {
  /** The path of `main.js`. */
  readonly mainFile: string;
  readonly workingFolder: string;
  /** The folder that npm was called in, its INIT_CWD; undefined without npm. */
  readonly npmFolder: string | undefined;
}

/** Returns the command that starts this program again, quoted for a shell. */
export function calledAs({ mainFile, workingFolder, npmFolder }: Start): string {
  const root = dirname(dirname(mainFile));
  const bundled = join(root, "bin", "penstock");
  if (existsSync(bundled)) return shellWord(bundled);
  // npm runs its scripts in the clone, for any folder that it was called in.
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
