import { DatabaseSync } from "node:sqlite";
import { type FileLock, takeFileLock } from "../../../../platform/base/file-lock.ts";
import { mustBePlain } from "../../../../platform/base/own-file.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import { faults } from "./database.ts";
import { isAbsent } from "./file-access.ts";

const busy = 5;

/**
 * Limits a database's name to one writer, with a lock on an empty file next to it. If another
 * process holds the lock, throws a StoreError without waiting. The kernel releases the lock when
 * the process ends.
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

/** Takes no lock, so a writer may start meanwhile. Throws a StoreError if the state is unknown. */
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
