// Why a data folder cannot be used, in words that name a way out. The start says so, and doctor before it.

import { accessSync, constants, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

const mend = "name another one with PENSTOCK_DATA_DIR or --data-dir";

/** The words for what making or writing the folder threw. */
export function folderFault(dataDir: string, error: unknown): string {
  const found = unusableFolder(dataDir);
  const { code, message } = error as NodeJS.ErrnoException;
  return `start on ${dataDir}: ${found ?? `the folder cannot be written (${code ?? message})`}: ${mend}`;
}

/** What keeps the folder, or the nearest one above it that is there, from being written; undefined when nothing does. Changes nothing. */
export function unusableFolder(dataDir: string): string | undefined {
  for (let path = resolve(dataDir); ; path = dirname(path)) {
    const isItself = path === resolve(dataDir);
    const kind = kindOf(path);
    if (kind === "nothing" && dirname(path) !== path) continue;
    if (kind === "file") return isItself ? "it is a file, and a folder is needed" : `${path} above it is a file`;
    const code = accessFault(path);
    if (code === undefined) return undefined;
    const what = isItself ? "it" : `the folder ${path} above it`;
    if (code === "EROFS") return `${what} is on a file system that is mounted read-only`;
    return `${what} may not be written by this user (${code}); give it to the user with \`chown\`, or`;
  }
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
