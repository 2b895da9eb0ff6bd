// Makes a folder and the missing ones above it. Node's own recursive mkdir tries for ever where the
// system answers ENOENT below a folder that exists, as /proc does. A mistyped setting would then be
// a start that never ends and says nothing.

import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

const ownerOnly = 0o700;

/** Those that it makes have the mode, less the umask. Throws the system's error. */
export function makeFolder(path: string, mode = ownerOnly): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have made the folder first.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
