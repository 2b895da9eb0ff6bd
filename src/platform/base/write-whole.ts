// Writes a file atomically: after a crash or a power failure the file has the old or the new text.

import { type FileHandle, open, rename, rm } from "node:fs/promises";
import path from "node:path";

/**
 * Writes the text to the file. Resolves when the text is on disk under the file's name. Rejects
 * with the system's error.
 */
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
 * Creates a new file that only its owner may read. Removes any existing file of this name first,
 * and does not follow links: if root writes to another user's folder, a link may point to any file.
 */
async function openAnew(file: string): Promise<FileHandle> {
  await rm(file, { force: true });
  return await open(file, "wx", 0o600);
}

/** Flushes the content of a file, or the names in a folder, to the disk. */
export async function sync(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
