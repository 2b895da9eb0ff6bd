// Opens files in a folder that an attacker may own. A file name in it may be a link to any file of
// the machine.

import { closeSync, constants, lstatSync, mkdirSync, openSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "./store-error.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
const ownerOnly = 0o600;
const folderOfOwner = 0o700;
const busyCode = 5;

/** Creates an empty file. Throws a StoreError if it is not a plain file, but no other errors. */
export function makeOwnFile(file: string): void {
  try {
    closeSync(openSync(file, O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_RDWR, ownerOnly));
  } catch {}
  mustBePlain(file);
}

export function newFile(file: string): number {
  return openSync(file, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR, ownerOnly);
}

export function mustBePlain(file: string): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new StoreError(
      `cannot open ${file}: it is not a regular file, but a link or a folder: move it away`,
    );
}

function mustBeSingle(file: string): void {
  mustBePlain(file);
  const links = lstatSync(file, { throwIfNoEntry: false })?.nlink ?? 1;
  if (links > 1)
    throw new StoreError(
      `cannot open ${file}: the file has ${links} hard links, but must have only one: remove the other links (find -samefile lists them)`,
    );
}

/**
 * Creates a folder and its parents. Node's recursive mkdir is not used, because it may retry
 * forever below /proc.
 */
export function makeFolder(folder: string, mode = folderOfOwner): void {
  if (isFolder(folder)) return;
  const above = path.dirname(folder);
  if (above !== folder) makeFolder(above, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    if (!isFolder(folder)) throw error;
  }
}

function isFolder(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Writes a file atomically. Resolves when it is on disk. Rejects with the system's error. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  const handle = await openAnew(temporary);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await sync(path.dirname(path.resolve(file)));
}

async function openAnew(file: string): Promise<FileHandle> {
  await rm(file, { force: true });
  return await open(file, "wx", 0o600);
}

/** Flushes the content of a file, or the list of names in a folder, to the disk. */
export async function sync(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export interface FileLock {
  isHeld(): boolean;
  close(): void;
}

/**
 * Locks a file by means of SQLite, because Node has no file locks. Throws a StoreError if the file
 * is a link, and otherwise the error of opening it.
 */
export function takeFileLock(file: string): FileLock | "busy" {
  makeOwnFile(file);
  mustBeSingle(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    const inode = inodeOf(file);
    return { isHeld: () => inodeOf(file) === inode, close: () => lock.close() };
  } catch (error) {
    lock.close();
    if (isBusy(error)) return "busy";
    throw error;
  }
}

export function isBusy(error: unknown): boolean {
  return (
    error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === busyCode
  );
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}
