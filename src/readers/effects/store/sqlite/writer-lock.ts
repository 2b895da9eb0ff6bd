// Limits a database to one writer, with an SQLite lock on an empty file next to the database. The
// lock belongs to the database's name, not to the file that currently has the name.

import { DatabaseSync } from "node:sqlite";
import { type FileLock, mustBePlain, takeFileLock } from "../../../../platform/base/files.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import { faults } from "./database.ts";
import { isAbsent } from "./file-access.ts";

const busy = 5;

/**
 * Takes the writer's lock. If another process holds the lock, throws a StoreError without waiting.
 * When the process ends for any reason, the kernel releases the lock.
 */
export function takeWriterLock(file: string): FileLock {
  return faults(`open ${file}`, () => {
    const name = `${file}.writer-lock`;
    const lock = takeFileLock(name);
    if (lock === "busy")
      throw new StoreError(
        `open ${file}: another \`penstock effects\` writes to it: end that process, or use another PENSTOCK_EFFECTS_URL`,
      );
    return lock;
  });
}

/**
 * Returns whether a writer holds the lock. Takes no lock, so a writer may start meanwhile. Throws a
 * StoreError if the state is unknown.
 */
export function isWriterLocked(file: string): boolean {
  const name = `${file}.writer-lock`;
  if (isAbsent(name)) return false;
  mustBePlain(name);
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
