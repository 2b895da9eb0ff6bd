import { accessSync, constants, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export const folderFix =
  "set PENSTOCK_DATA_DIR (--data-dir) to another folder, or give this user write permission";

/** Explains an error of creating or writing the data folder. */
export function folderFault(dataDir: string, error: unknown): string {
  const found = unusableFolder(dataDir);
  const { code, message } = error as NodeJS.ErrnoException;
  return `start on ${dataDir}: ${found ?? `the folder is not writable (${code ?? message})`}: ${folderFix}`;
}

/**
 * Returns why this user cannot write to the folder, or to the store and notes in it; undefined if
 * the user can. If the folder is missing, checks its nearest existing parent. Changes nothing.
 */
export function unusableFolder(dataDir: string): string | undefined {
  const folder = resolve(dataDir);
  const inside = ["nats", "jetstream"]
    .map((name) => join(folder, name))
    .filter((path) => kindOf(path) !== "nothing");
  for (const path of [...inside, nearest(folder)]) {
    const what = path === folder ? "it" : path;
    if (kindOf(path) === "file") return `${what} is a file, not a folder`;
    const code = accessFault(path);
    if (code === "EROFS") return `${what} is on a file system that is mounted read-only`;
    if (code !== undefined) return `this user may not write to ${what} (${code})`;
  }
  return undefined;
}

function nearest(path: string): string {
  return kindOf(path) !== "nothing" || dirname(path) === path ? path : nearest(dirname(path));
}

function kindOf(path: string): "folder" | "file" | "nothing" {
  try {
    return statSync(path).isDirectory() ? "folder" : "file";
  } catch (error) {
    // ENOTDIR: one of the parents is a file. `nearest` reaches this file on its way up.
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? "nothing" : "folder";
  }
}

function accessFault(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown";
  }
}
