// Writes a file so that it has the old text or the new one, whatever happens meanwhile: a process
// that is killed, or a power cut.

import { type FileHandle, open, rename, rm } from "node:fs/promises";
import path from "node:path";

/** Fulfilled when the text is on disk under the file's name. Rejects with the system's error. */
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

/**
 * Makes a file where there is none, and only for its owner. What has its name is removed, and not
 * followed: where root writes in somebody else's folder, a link may lead to any file.
 */
export async function openAnew(file: string): Promise<FileHandle> {
  await rm(file, { force: true });
  return await open(file, "wx", 0o600);
}

/** Brings a file's content, or the names in a folder, to the disk. */
export async function sync(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
