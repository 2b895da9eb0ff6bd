// Puts a database that was made anew in the place of the one there is, so that whenever the process
// ends, one of both has the name, in whole. Whoever calls has the writer's lock on that name.

import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
} from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../store-error.ts";
import { faults } from "./database.ts";

interface Replacing {
  readonly file: string;
  readonly anew: string;
  /** What the old one is called afterwards, in place of what has that name. */
  readonly kept: string;
}

const files = ["", "-wal", "-shm", ".writer-lock"] as const;

export function removeDatabase(file: string): void {
  for (const end of files) rmSync(`${file}${end}`, { force: true });
}

/** All three are in one folder. Throws a StoreError when something reads one of them. */
export function replaceDatabase({ file, anew, kept }: Replacing): void {
  for (const one of [anew, file]) intoOneFile(one);
  removeDatabase(kept);
  keep(file, kept);
  // Before the name says something else: a log that came back would be taken for the new one's.
  syncFolder(file);
  renameSync(anew, file);
  syncFolder(file);
  rmSync(`${anew}.writer-lock`, { force: true });
}

/** Writes the log into the file and removes it: the next one with that name would read it. */
function intoOneFile(file: string): void {
  if (!existsSync(file)) throw new StoreError(`open ${file}: there is no such file any more`);
  faults(`write to ${file}`, () => {
    const database = new DatabaseSync(file);
    try {
      // Takes the lock that no other connection shares; whoever opens it to write undoes this.
      database.exec("PRAGMA journal_mode = DELETE");
    } finally {
      database.close();
    }
  });
  if (existsSync(`${file}-wal`))
    throw new StoreError(`write to ${file}: its log is still there: end what reads it`);
}

function keep(file: string, kept: string): void {
  try {
    linkSync(file, kept);
  } catch {
    // A file system without links. It takes its time, and the name stays where it is.
    copyFileSync(file, kept);
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
