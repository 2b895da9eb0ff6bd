// Creates a folder and its missing parents. Node's own recursive mkdir retries forever if the
// system returns ENOENT below an existing folder, as in /proc. A mistyped setting would then hang
// the start without a message.

import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

const ownerOnly = 0o700;

/**
 * Creates the folder and its missing parents with the mode, less the umask. Throws the system's
 * error.
 */
export function makeFolder(path: string, mode = ownerOnly): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have created the folder in the meantime.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
