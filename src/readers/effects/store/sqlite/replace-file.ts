// Puts a database that was rebuilt in the place of the one there is, so that whenever the process
// ends, one of both has the name, in whole. Whoever calls has the writer's lock on that name.

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
  readonly anew: string;
}

const files = ["", "-wal", "-shm"] as const;
/** What reads now and then, such as a sink that asks for people, is done within that time. */
const readersMsMax = 3_000;
const againMs = 20;
const busy = 5;

/** `keepLock`: whoever calls has it. */
export function removeDatabase(file: string, { keepLock = false } = {}): void {
  for (const end of files) rmSync(`${file}${end}`, { force: true });
  if (!keepLock) rmSync(`${file}.writer-lock`, { force: true });
}

/**
 * Makes an empty file for the new database, with owner and mode of the one it will replace: whoever
 * makes it may be root, and whoever opens it afterwards is not. Throws a StoreError where this user
 * may not do so.
 */
export function makeBeside({ file, anew }: Replacing): void {
  removeDatabase(anew);
  const { uid, gid, mode } = statSync(file);
  try {
    const descriptor = newFile(anew);
    try {
      if (isOfAnother(statSync(anew), { uid, gid })) fchownSync(descriptor, uid, gid);
      fchmodSync(descriptor, mode & 0o777);
    } finally {
      closeSync(descriptor);
    }
    // Where the lock's file was not there, whoever makes the new database made it. To open it and
    // close it again would let go of the lock.
    const lock = `${file}.writer-lock`;
    mustBeSingle(lock);
    if (isOfAnother(lstatSync(lock), { uid, gid })) lchownSync(lock, uid, gid);
  } catch (error) {
    removeDatabase(anew);
    const reason = (error as Error).message;
    throw new StoreError(
      `make ${anew}: it cannot have the owner of ${file} (${reason}): run this as the user that \`penstock effects\` runs as`,
    );
  }
}

type Owner = Pick<Stats, "uid" | "gid">;

function isOfAnother(file: Owner, { uid, gid }: Owner): boolean {
  return file.uid !== uid || file.gid !== gid;
}

/**
 * Both are in one folder. Gives the name that the old one has afterwards, which nothing had before.
 * Throws a StoreError when something reads one of them.
 */
export function replaceDatabase({ file, anew }: Replacing): string {
  for (const one of [anew, file]) intoOneFile(one);
  const kept = keep(file);
  // Before the name says something else: a log that came back would be taken for the new one's.
  syncFolder(file);
  renameSync(anew, file);
  syncFolder(file);
  rmSync(`${anew}.writer-lock`, { force: true });
  return kept;
}

/** Writes the log into the file and removes it: the next one with that name would read it. */
function intoOneFile(file: string): void {
  if (!existsSync(file)) throw new StoreError(`open ${file}: there is no such file any more`);
  faults(`write to ${file}`, () => {
    const database = new DatabaseSync(file);
    try {
      // Takes the lock that no other connection shares; whoever opens it to write undoes this.
      whenNobodyReads(() => database.exec("PRAGMA journal_mode = DELETE"));
    } finally {
      database.close();
    }
  });
  if (existsSync(`${file}-wal`))
    throw new StoreError(`write to ${file}: its log is still there: end what reads it`);
}

/** SQLite waits for no reader by itself here. */
function whenNobodyReads(work: () => void): void {
  const sinceMonotonicMs = performance.now();
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      const isBusy = error instanceof Error && "errcode" in error && error.errcode === busy;
      if (!isBusy || performance.now() - sinceMonotonicMs > readersMsMax) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, againMs);
    }
  }
}

/** Gives the database one more name, or makes a copy of that name. */
function keep(file: string): string {
  const kept = keptName(file);
  try {
    linkSync(file, kept);
  } catch {
    // A file system without links. It takes its time, and the name stays where it is.
    const part = `${file}.before-rebuild.part`;
    rmSync(part, { force: true });
    copyFileSync(file, part, constants.COPYFILE_EXCL);
    renameSync(part, kept);
  }
  return kept;
}

/**
 * The first name that is free: what was kept once may be all there is of events that have left the
 * streams. A name of the database itself is left of a process that ended before it was replaced.
 */
function keptName(file: string): string {
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
