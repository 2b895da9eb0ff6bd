// Keeps a database to one writer, by a lock of SQLite's on an empty file beside it. It goes by the
// database's name: whatever file has that name meanwhile, the lock is on it.

import { DatabaseSync } from "node:sqlite";
import { type FileLock, takeFileLock } from "../../../../platform/base/file-lock.ts";
import { mustBePlain } from "../../../../platform/base/own-file.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import { faults } from "./database.ts";
import { isAbsent } from "./file-access.ts";

const busy = 5;

/**
 * Throws a StoreError when another has it, without waiting. The kernel lets go of it when the
 * process ends, however it ends.
 */
export function takeWriterLock(file: string): FileLock {
  return faults(`open ${file}`, () => {
    const name = `${file}.writer-lock`;
    const lock = takeFileLock(name);
    if (lock === "busy")
      throw new StoreError(
        `open ${file}: another \`penstock effects\` writes to it: end that one, or name another PENSTOCK_EFFECTS_URL`,
      );
    return lock;
  });
}

/** Takes nothing: a writer may come meanwhile. Throws a StoreError where it cannot be told. */
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
