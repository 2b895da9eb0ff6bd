// Makes a folder and those above it that are missing. Node's own recursive mkdir asks for ever
// where the system answers ENOENT below a folder that is there, as /proc does, and so a mistyped
// setting would be a start that never ends and says nothing.

import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Only this user may look into what is made. Throws what the system says. */
export function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
