// Returns the command line that starts this program again, with the launcher of a checkout or of a
// bundle.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

interface Start {
  /** The path of `main.js` of a bundle or checkout. */
  readonly mainFile: string;
  readonly workingFolder: string;
  /** The folder that npm was called in, its INIT_CWD; undefined without npm. */
  readonly npmFolder: string | undefined;
}

/**
 * Returns the command line, quoted for a shell, so that a command and its flags can be appended.
 */
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
  // The launcher of a checkout uses the data folder of the checkout. The launcher of a bundle uses
  // the data folder in the working folder.
  return existsSync(join(root, "penstock"))
    ? resolve(dataDir) === join(root, "data")
    : dataDir === "./data";
}

export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
