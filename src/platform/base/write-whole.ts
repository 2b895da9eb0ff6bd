// Writes a file atomically: after a crash or a power failure it has the old text or the new one.

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
 * Creates a new file that only its owner may read. Anything under its name is removed, and links
 * are not followed: if root writes to another user's folder, a link may point to any file.
 */
export async function openAnew(file: string): Promise<FileHandle> {
  await rm(file, { force: true });
  return await open(file, "wx", 0o600);
}

/** Flushes a file's content, or the names in a folder, to the disk. */
export async function sync(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
