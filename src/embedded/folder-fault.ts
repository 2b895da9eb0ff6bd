// Why a data folder cannot be used, in words that name a way out. The start says so, and doctor
// before it.

import { accessSync, constants, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export const folderFix =
  "name another folder with PENSTOCK_DATA_DIR (--data-dir), or let this user write there";

/** The words for what making or writing the folder threw. */
export function folderFault(dataDir: string, error: unknown): string {
  const found = unusableFolder(dataDir);
  const { code, message } = error as NodeJS.ErrnoException;
  return `start on ${dataDir}: ${found ?? `the folder cannot be written (${code ?? message})`}: ${folderFix}`;
}

/**
 * What keeps the folder, what is in it, or the nearest one above it that is there, from being
 * written; undefined: nothing. Changes nothing.
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
    // Below a file there is nothing either; the file itself is met on the way up.
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
