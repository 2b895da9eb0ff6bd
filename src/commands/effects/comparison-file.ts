// Where `penstock effects verify` makes the database that it compares with: beside the one that is
// compared, or else in the data folder. Both are places for that much, and a folder for temporary
// files may be small, in memory, or not there. One that was killed left its file to the next one.

import { accessSync, constants } from "node:fs";
import path from "node:path";
import { makeFolder } from "../../platform/base/make-folder.ts";
import type { StorePlace } from "../../readers/effects/store/open.ts";
import { isAbsent } from "../../readers/effects/store/sqlite/file-access.ts";
import { removeDatabase } from "../../readers/effects/store/sqlite/replace-file.ts";
import { isWriterLocked, takeWriterLock } from "../../readers/effects/store/sqlite/writer-lock.ts";
import { CommandError } from "../context.ts";

/**
 * A name under which there is nothing; whoever opens it removes it afterwards. Throws a
 * CommandError where no folder can be written to, or another comparison is under way.
 */
export function comparisonFile(place: StorePlace, dataDir: string): string {
  const folder = folderFor(place, path.resolve(dataDir));
  const name = place.kind === "sqlite" ? path.basename(place.file) : "effects";
  const file = path.join(folder, `${name}.verify`);
  mustBeOurs(file);
  if (isWriterLocked(file))
    throw new CommandError(`verify: another one is at work, on ${file}: wait for its end`);
  const lock = takeWriterLock(file);
  try {
    removeDatabase(file, { keepLock: true });
  } finally {
    lock.close();
  }
  return file;
}

/** One that root began, and that was killed, may have left what only root may open. */
function mustBeOurs(file: string): void {
  for (const end of ["", "-wal", "-shm", ".writer-lock"]) {
    const name = `${file}${end}`;
    if (isAbsent(name)) continue;
    try {
      accessSync(name, constants.R_OK | constants.W_OK);
    } catch {
      throw new CommandError(
        `verify: ${name} is another user's: where no other one is at work, remove all files of the name ${path.basename(file)}*`,
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
    `verify: it makes another database, and cannot write to ${dataDir} (${fault}): name a folder with room for it in PENSTOCK_DATA_DIR (--data-dir)`,
  );
}

/** Why the folder cannot be written to. */
function faultOf(folder: string, make = (): void => {}): string | undefined {
  try {
    make();
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
