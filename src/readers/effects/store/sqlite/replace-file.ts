// Replaces a database with a rebuilt database. At every moment, a complete database has the name.
// The caller must hold the writer's lock for this name.

import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isBusy, newFile } from "../../../../platform/base/files.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import { faults } from "./database.ts";

interface Replacing {
  readonly file: string;
  readonly rebuilt: string;
}

const ends = ["", "-wal", "-shm", ".writer-lock"] as const;
const readersMsMax = 3_000;
const retryMs = 20;

export function removeDatabase(file: string): void {
  for (const end of ends) rmSync(`${file}${end}`, { force: true });
}

/**
 * Creates an empty file with the owner and the mode of the current database. Throws a StoreError if
 * the user has no permission to set the owner, or if the file system does not support hard links.
 */
export function createReplacement({ file, rebuilt }: Replacing): void {
  rmSync(backUp(file));
  removeDatabase(rebuilt);
  const { uid, gid, mode } = statSync(file);
  try {
    const descriptor = newFile(rebuilt);
    try {
      fchownSync(descriptor, uid, gid);
      fchmodSync(descriptor, mode & 0o777);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    removeDatabase(rebuilt);
    const reason = (error as Error).message;
    throw new StoreError(
      `cannot create ${rebuilt}: cannot give it the owner of ${file} (${reason}): run the command as the user of \`penstock effects\``,
    );
  }
}

/**
 * Replaces the database and returns the new name of the old database. Both files must be in the
 * same folder. Throws a StoreError if another process is reading one of the files.
 */
export function replaceDatabase({ file, rebuilt }: Replacing): string {
  for (const one of [rebuilt, file]) intoOneFile(one);
  const backup = backUp(file);
  // The folder is synced first. Otherwise, the old write-ahead log could reappear after a crash,
  // and SQLite would apply it to the new database.
  syncFolder(file);
  renameSync(rebuilt, file);
  syncFolder(file);
  rmSync(`${rebuilt}.writer-lock`, { force: true });
  return backup;
}

/** Removes the write-ahead log. Otherwise, SQLite would apply it to the next database. */
function intoOneFile(file: string): void {
  if (!existsSync(file)) throw new StoreError(`cannot open ${file}: the file no longer exists`);
  faults(`write to ${file}`, () => {
    const database = new DatabaseSync(file);
    try {
      retryWhileRead(() => database.exec("PRAGMA journal_mode = DELETE"));
    } finally {
      database.close();
    }
  });
  if (existsSync(`${file}-wal`))
    throw new StoreError(
      `cannot write to ${file}: its log still exists: end the processes that read the database`,
    );
}

function retryWhileRead(work: () => void): void {
  const sinceMonotonicMs = performance.now();
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() - sinceMonotonicMs > readersMsMax) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
    }
  }
}

function backUp(file: string): string {
  const backup = backupName(file);
  try {
    linkSync(file, backup);
  } catch (error) {
    const reason = (error as Error).message;
    throw new StoreError(
      `cannot back up ${file} to ${backup} (${reason}): if the file system has no hard links, build the new database in another file with --into`,
    );
  }
  return backup;
}

/** Returns a new name, because an earlier backup may have the only data about old events. */
function backupName(file: string): string {
  const inode = statSync(file).ino;
  for (let nth = 1; ; nth++) {
    const name = `${file}.before-rebuild${nth === 1 ? "" : `-${nth}`}`;
    const found = statSync(name, { throwIfNoEntry: false });
    if (found?.ino === inode) rmSync(name);
    if (found === undefined || found.ino === inode) return name;
  }
}

function syncFolder(file: string): void {
  const folder = openSync(path.dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
