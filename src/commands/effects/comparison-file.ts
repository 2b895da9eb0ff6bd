// The file of the database that `penstock effects verify` builds: next to the compared database, or
// else in the data folder. A folder for temporary files may be too small.

import { accessSync, constants } from "node:fs";
import path from "node:path";
import { makeFolder } from "../../platform/base/files.ts";
import type { StorePlace } from "../../readers/effects/store/open.ts";
import { isWriterLocked, takeWriterLock } from "../../readers/effects/store/sqlite/database.ts";
import { isAbsent } from "../../readers/effects/store/sqlite/file-access.ts";
import { removeDatabase } from "../../readers/effects/store/sqlite/replace-file.ts";
import { CommandError } from "../context.ts";

/**
 * Returns a path for the file, which the caller must remove, and removes that of a killed run.
 * Throws a CommandError if no folder is writable, or if another comparison is running.
 */
export function comparisonFile(place: StorePlace, dataDir: string): string {
  const folder = folderFor(place, path.resolve(dataDir));
  const name = place.kind === "sqlite" ? path.basename(place.file) : "effects";
  const file = path.join(folder, `${name}.verify`);
  mustBeOurs(file);
  if (isWriterLocked(file))
    throw new CommandError(`verify: another verify is running on ${file}: wait until it ends`);
  const lock = takeWriterLock(file);
  try {
    removeDatabase(file, { keepLock: true });
  } finally {
    lock.close();
  }
  return file;
}

/**
 * Throws a CommandError if this user cannot open an existing file: a killed run of root may have
 * left a file that only root can open.
 */
function mustBeOurs(file: string): void {
  for (const end of ["", "-wal", "-shm", ".writer-lock"]) {
    const name = `${file}${end}`;
    if (isAbsent(name)) continue;
    try {
      accessSync(name, constants.R_OK | constants.W_OK);
    } catch {
      throw new CommandError(
        `verify: ${name} belongs to another user: if no other verify is running, remove all files named ${path.basename(file)}*`,
      );
    }
  }
}

function folderFor(place: StorePlace, dataDir: string): string {
  if (place.kind === "sqlite" && faultOf(path.dirname(place.file)) === undefined)
    return path.dirname(place.file);
  const fault = faultOf(dataDir, () => makeFolder(dataDir));
  if (fault === undefined) return dataDir;
  throw new CommandError(
    `verify: cannot create the comparison database in ${dataDir} (${fault}): set PENSTOCK_DATA_DIR (--data-dir) to a writable folder with enough free space`,
  );
}

function faultOf(folder: string, make = (): void => {}): string | undefined {
  try {
    make();
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
