// Replaces a database by a rebuilt one, so that at any moment one of both has the name, completely.
// The caller must hold the writer's lock on that name.

import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lchownSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { mustBeSingle, newFile } from "../../../../platform/base/own-file.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import { faults } from "./database.ts";

interface Replacing {
  readonly file: string;
  readonly rebuilt: string;
}

const files = ["", "-wal", "-shm"] as const;
/** Time within which occasional readers, such as a sink that queries people, are done. */
const readersMsMax = 3_000;
const retryMs = 20;
const busy = 5;

/** `keepLock`: the caller holds the lock. */
export function removeDatabase(file: string, { keepLock = false } = {}): void {
  for (const end of files) rmSync(`${file}${end}`, { force: true });
  if (!keepLock) rmSync(`${file}.writer-lock`, { force: true });
}

/**
 * Creates an empty file for the new database, with owner and mode of the one it will replace: the
 * process that creates it may be root, and the one that opens it later is not. Throws a StoreError
 * if this user may not do so.
 */
export function createReplacement({ file, rebuilt }: Replacing): void {
  removeDatabase(rebuilt);
  const { uid, gid, mode } = statSync(file);
  try {
    const descriptor = newFile(rebuilt);
    try {
      if (isOfAnother(statSync(rebuilt), { uid, gid })) fchownSync(descriptor, uid, gid);
      fchmodSync(descriptor, mode & 0o777);
    } finally {
      closeSync(descriptor);
    }
    // If the lock's file did not exist, the process that builds the new database created it.
    // Opening and closing it again would release the lock.
    const lock = `${file}.writer-lock`;
    mustBeSingle(lock);
    if (isOfAnother(lstatSync(lock), { uid, gid })) lchownSync(lock, uid, gid);
  } catch (error) {
    removeDatabase(rebuilt);
    const reason = (error as Error).message;
    throw new StoreError(
      `create ${rebuilt}: it cannot get the owner of ${file} (${reason}): run this as the user that \`penstock effects\` runs as`,
    );
  }
}

type Owner = Pick<Stats, "uid" | "gid">;

function isOfAnother(file: Owner, { uid, gid }: Owner): boolean {
  return file.uid !== uid || file.gid !== gid;
}

/**
 * Both files are in one folder. Returns the new name of the old one, which was unused before.
 * Throws a StoreError while a process reads one of them.
 */
export function replaceDatabase({ file, rebuilt }: Replacing): string {
  for (const one of [rebuilt, file]) intoOneFile(one);
  const backup = backUp(file);
  // Synced before the rename: a log that reappeared would be taken for the new database's.
  syncFolder(file);
  renameSync(rebuilt, file);
  syncFolder(file);
  rmSync(`${rebuilt}.writer-lock`, { force: true });
  return backup;
}

/**
 * Writes the log into the file and removes it: otherwise the next database of that name would read
 * it.
 */
function intoOneFile(file: string): void {
  if (!existsSync(file)) throw new StoreError(`open ${file}: the file no longer exists`);
  faults(`write to ${file}`, () => {
    const database = new DatabaseSync(file);
    try {
      // Takes the exclusive lock; the next writer switches back to WAL.
      retryWhileRead(() => database.exec("PRAGMA journal_mode = DELETE"));
    } finally {
      database.close();
    }
  });
  if (existsSync(`${file}-wal`))
    throw new StoreError(`write to ${file}: its log still exists: end the processes that read it`);
}

/** Retries, because SQLite does not wait for readers here. */
function retryWhileRead(work: () => void): void {
  const sinceMonotonicMs = performance.now();
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      const isBusy = error instanceof Error && "errcode" in error && error.errcode === busy;
      if (!isBusy || performance.now() - sinceMonotonicMs > readersMsMax) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
    }
  }
}

/** Gives the database a second name, or copies it to that name. */
function backUp(file: string): string {
  const backup = backupName(file);
  try {
    linkSync(file, backup);
  } catch {
    // A file system without links: copies to a temporary name first, so that a complete copy has
    // the name.
    const part = `${file}.before-rebuild.part`;
    rmSync(part, { force: true });
    copyFileSync(file, part, constants.COPYFILE_EXCL);
    renameSync(part, backup);
  }
  return backup;
}

/**
 * The first unused name: an earlier backup may be the only data about events that have left the
 * streams. A name that already links to the database is left from a process that ended before the
 * replacement.
 */
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
