// A file lock that the kernel releases when the process ends, even by a crash: SQLite's lock on an
// empty file, because Node has no file locks.

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { makeOwnFile, mustBeSingle } from "./own-file.ts";

const busy = 5;

export interface FileLock {
  /**
   * Whether the locked file still has its name. If not, another process may hold a lock of this
   * name.
   */
  isHeld(): boolean;
  close(): void;
}

/** Creates and locks the file. Throws the error of opening it, and a StoreError if it is a link. */
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
