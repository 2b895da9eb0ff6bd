import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

const ownerOnly = 0o700;

/**
 * Creates the folder and its missing parents. Node's recursive mkdir would retry forever if the
 * system returns ENOENT below an existing folder, as in /proc.
 */
export function makeFolder(path: string, mode = ownerOnly): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
