// Whether a database's file is there, and who may read it.

import { accessSync, closeSync, constants, openSync, statSync } from "node:fs";
import { StoreError } from "../../../base/store-error.ts";

/** Throws a StoreError that says what is to be done. */
export function mustBeReadable(file: string): void {
  if (isAbsent(file))
    throw new StoreError(
      `read ${file}: there is no such file: \`penstock effects\` makes it when it first runs, and PENSTOCK_EFFECTS_URL (--effects-url) names another`,
    );
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    const reason = (error as Error).message;
    throw new StoreError(
      `read ${file}: it cannot be read (${reason}): run this as the user that \`penstock effects\` runs as`,
    );
  }
}

/** Whether there is surely no such file; false where this user may not even look. */
export function isAbsent(file: string): boolean {
  try {
    statSync(file);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/**
 * Makes a file that only its owner may read, where there is none: it will hold what is known of
 * people. SQLite gives its log and its index (-wal, -shm) the mode of the database.
 */
export function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "a", 0o600));
  } catch {
    // SQLite meets the same fault, and says what it is.
  }
}
