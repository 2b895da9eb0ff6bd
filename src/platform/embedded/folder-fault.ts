// Says why a data folder cannot be used, and what to do about it. The start reports it, and doctor
// does so before a start.

import { accessSync, constants, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export const folderFix =
  "name another folder with PENSTOCK_DATA_DIR (--data-dir), or let this user write there";

/** The message for the error that making or writing the folder threw. */
export function folderFault(dataDir: string, error: unknown): string {
  const found = unusableFolder(dataDir);
  const { code, message } = error as NodeJS.ErrnoException;
  return `start on ${dataDir}: ${found ?? `the folder cannot be written (${code ?? message})`}: ${folderFix}`;
}

/**
 * What keeps this user from writing the folder, the store and notes in it, or, while it is missing,
 * the nearest folder above it; undefined when nothing does. Changes nothing.
 */
export function unusableFolder(dataDir: string): string | undefined {
  const folder = resolve(dataDir);
  const inside = ["nats", "jetstream"]
    .map((name) => join(folder, name))
    .filter((path) => kindOf(path) !== "nothing");
  for (const path of [...inside, nearest(folder)]) {
    const what = path === folder ? "it" : path;
    if (kindOf(path) === "file") return `${what} is a file, and a folder is needed`;
    const code = accessFault(path);
    if (code === "EROFS") return `${what} is on a file system that is mounted read-only`;
    if (code !== undefined) return `${what} may not be written by this user (${code})`;
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
    // ENOTDIR: a file is where a folder above the path should be, so nothing is at the path.
    // `nearest` meets that file on its way up.
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
