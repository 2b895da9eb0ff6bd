// Files in a folder with a possibly hostile owner: if root works there, a name may be a link to any
// file of the machine.

import { closeSync, constants, lstatSync, openSync } from "node:fs";
import { StoreError } from "./store-error.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
const ownerOnly = 0o600;

/**
 * Creates an empty file unless it exists. Throws a StoreError if the name is a link or not a file.
 * Ignores other errors: the code that opens the file next reports them.
 */
export function makeOwnFile(file: string): void {
  try {
    closeSync(openSync(file, O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_RDWR, ownerOnly));
  } catch {}
  mustBePlain(file);
}

/** Returns the descriptor of a new file. Throws the system's error. */
export function newFile(file: string): number {
  return openSync(file, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR, ownerOnly);
}

/** Throws a StoreError if the name is a link or not a regular file. */
export function mustBePlain(file: string): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new StoreError(
      `open ${file}: not a regular file, but a link, a folder or similar: remove it`,
    );
}

/** Like mustBePlain, and rejects a second hard link: a write would change both. */
export function mustBeSingle(file: string): void {
  mustBePlain(file);
  const links = lstatSync(file, { throwIfNoEntry: false })?.nlink ?? 1;
  if (links > 1) throw new StoreError(`open ${file}: the file has a second hard link: remove it`);
}
