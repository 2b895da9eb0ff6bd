// Files beside others that a folder's owner could have laid as a trap: where root works in somebody
// else's folder, a name may lead to any file of the machine.

import { closeSync, constants, lstatSync, openSync } from "node:fs";
import { StoreError } from "./store-error.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
const ownerOnly = 0o600;

/**
 * Makes an empty file that only its owner may read, where there is none. Throws a StoreError where
 * the name is a link or no file, and nothing where it cannot be opened for another reason: whoever
 * opens it next meets the same one.
 */
export function makeOwnFile(file: string): void {
  try {
    closeSync(openSync(file, O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_RDWR, ownerOnly));
  } catch {}
  mustBePlain(file);
}

/** The descriptor of a file that was not there before. Throws what opening it throws. */
export function newFile(file: string): number {
  return openSync(file, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR, ownerOnly);
}

/** Throws a StoreError where there is a link of that name, or no file. */
export function mustBePlain(file: string): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new StoreError(`open ${file}: it is no file but a link, a folder or the like: remove it`);
}

/** As `mustBePlain`, also where the file has a second name: what is done to it is done to that. */
export function mustBeSingle(file: string): void {
  mustBePlain(file);
  const links = lstatSync(file, { throwIfNoEntry: false })?.nlink ?? 1;
  if (links > 1) throw new StoreError(`open ${file}: the file has another name, too: remove it`);
}
