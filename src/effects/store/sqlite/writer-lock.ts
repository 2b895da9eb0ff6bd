// Keeps a database to one writer, by a lock of SQLite's on an empty file beside it. It goes by the
// database's name: whatever file has that name meanwhile, the lock is on it.

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../../../base/store-error.ts";
import { faults } from "./database.ts";
import { isAbsent, makePrivate } from "./file-access.ts";

const busy = 5;

export interface WriterLock {
  /** Not when somebody removed the file: another one may be locked in its place. */
  isHeld(): boolean;
  close(): void;
}

/**
 * Throws a StoreError when another has it, without waiting. The kernel lets go of it when the
 * process ends, however it ends.
 */
export function takeWriterLock(file: string): WriterLock {
  return faults(`open ${file}`, () => {
    const name = `${file}.writer-lock`;
    makePrivate(name);
    const lock = new DatabaseSync(name, { timeout: 0 });
    try {
      lock.exec("BEGIN EXCLUSIVE");
      const inode = inodeOf(name);
      return { isHeld: () => inodeOf(name) === inode, close: () => lock.close() };
    } catch (error) {
      lock.close();
      if (error instanceof Error && "errcode" in error && error.errcode === busy)
        throw new StoreError(
          `open ${file}: another \`penstock effects\` writes to it: end that one, or name another PENSTOCK_EFFECTS_URL`,
        );
      throw error;
    }
  });
}

/** Takes nothing: a writer may come meanwhile. Throws a StoreError where it cannot be told. */
export function isWriterLocked(file: string): boolean {
  const name = `${file}.writer-lock`;
  if (isAbsent(name)) return false;
  return faults(`read ${name}`, () => {
    const lock = new DatabaseSync(name, { readOnly: true, timeout: 0 });
    try {
      lock.prepare("SELECT count(*) FROM sqlite_master").get();
      return false;
    } catch (error) {
      if (error instanceof Error && "errcode" in error && error.errcode === busy) return true;
      throw error;
    } finally {
      lock.close();
    }
  });
}

function inodeOf(name: string): number | undefined {
  return statSync(name, { throwIfNoEntry: false })?.ino;
}
