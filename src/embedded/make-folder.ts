// Makes a folder and the missing ones above it. Node's own recursive mkdir tries for ever where the
// system answers ENOENT below a folder that exists, as /proc does. A mistyped setting would then be
// a start that never ends and says nothing.

import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Makes folders that only this user may look into. Throws the system's error. */
export function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made the folder first.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
