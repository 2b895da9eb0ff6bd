import { accessSync, constants, lstatSync, readdirSync } from "node:fs";
import { link, rename, rm } from "node:fs/promises";
import path from "node:path";
import { CommandError, usageExitCode } from "../context.ts";

const partForm = /^\.(?:[0-9a-f-]{36}\.part|making-[A-Za-z0-9]{6})$/;

/** Throws a CommandError if the file cannot be created, or if it must not be replaced. */
export function mustBeFree(out: string, isForced: boolean): void {
  const folder = path.dirname(out);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "does not exist" : `is not writable for this user (${code})`;
    throw new CommandError(`export: the folder ${folder} ${why}: name another file`, usageExitCode);
  }
  const found = lstatSync(out, { throwIfNoEntry: false });
  if (found === undefined || (isForced && found.isFile())) return;
  const what = found.isFile()
    ? "exists: name another file, or replace it with --force"
    : "exists and is not a regular file: name another file";
  throw new CommandError(`export: ${out} ${what}`, usageExitCode);
}

/**
 * Gives the complete file its final name. Rejects with a CommandError if a file with this name
 * exists and must not be replaced.
 */
export async function giveName(whole: string, out: string, isForced: boolean): Promise<void> {
  if (!isForced) {
    try {
      // A link is used because a rename would replace an existing file.
      await link(whole, out);
      await rm(whole);
      return;
    } catch {
      // Either the file exists, or the file system does not support hard links.
      mustBeFree(out, isForced);
    }
  }
  await rename(whole, out);
}

export function othersParts(out: string): string[] {
  const { dir, base } = path.parse(out);
  return namesIn(dir === "" ? "." : dir)
    .filter((name) => name.startsWith(base) && partForm.test(name.slice(base.length)))
    .map((name) => path.join(dir, name));
}

/** The error is ignored, because the later write reports it. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
