// A lock on a name in a file system that the kernel lets go of when the process ends, however it
// ends: SQLite's, on an empty file. Node has no call for one of its own.

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { makeOwnFile, mustBeSingle } from "./own-file.ts";

const busy = 5;

export interface FileLock {
  /** Not when somebody removed the file: another one may be locked in its place. */
  isHeld(): boolean;
  close(): void;
}

/**
 * Makes the file. `busy`: somebody else has it. Throws what opening a file throws, and a StoreError
 * where the name leads to another file.
 */
export function takeFileLock(file: string): FileLock | "busy" {
  makeOwnFile(file);
  mustBeSingle(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    const inode = inodeOf(file);
    return { isHeld: () => inodeOf(file) === inode, close: () => lock.close() };
  } catch (error) {
    lock.close();
    if (error instanceof Error && "errcode" in error && error.errcode === busy) return "busy";
    throw error;
  }
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}
