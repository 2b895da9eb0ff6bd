// The file that an export makes: it replaces no other one unasked, and what an export that was
// killed has left beside it is told.

import { lstatSync, readdirSync } from "node:fs";
import { link, rename, rm } from "node:fs/promises";
import path from "node:path";
import { CommandError, usageExitCode } from "../context.ts";

/** What an export writes until it is whole is called so behind the file's name. */
const partForm = /^\.(?:[0-9a-f-]{36}\.part|making-[A-Za-z0-9]{6})$/;

/** Throws a CommandError where something is there, and is not to be replaced. */
export function mustBeFree(out: string, isForced: boolean): void {
  const found = lstatSync(out, { throwIfNoEntry: false });
  if (found === undefined || (isForced && found.isFile())) return;
  const what = found.isFile()
    ? "is there already: name another file, or replace it with --force"
    : "is there and no plain file, which nothing replaces: name another one";
  throw new CommandError(`export: ${out} ${what}`, usageExitCode);
}

/**
 * Gives a file that is whole its name. Rejects with a CommandError where something has that name by
 * now, and is not to be replaced.
 */
export async function giveName(whole: string, out: string, isForced: boolean): Promise<void> {
  if (!isForced) {
    try {
      // Unlike a renaming, this replaces nothing.
      await link(whole, out);
      await rm(whole);
      return;
    } catch {
      // Something is there, or this file system knows no second names.
      mustBeFree(out, isForced);
    }
  }
  await rename(whole, out);
}

/** Parts of exports to the same file, which are under way or were killed. */
export function othersParts(out: string): string[] {
  const { dir, base } = path.parse(out);
  return namesIn(dir === "" ? "." : dir)
    .filter((name) => name.startsWith(base) && partForm.test(name.slice(base.length)))
    .map((name) => path.join(dir, name));
}

/** None where the folder cannot be read: to write into it says why. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
