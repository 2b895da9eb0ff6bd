import { type FileHandle, open, rename, rm } from "node:fs/promises";
import path from "node:path";

/** Writes a file atomically. Resolves when the text is on disk. Rejects with the system's error. */
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
 * Creates a new file in place of any file of this name, without following links: if root writes to
 * another user's folder, a link may point to any file.
 */
export async function openAnew(file: string): Promise<FileHandle> {
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
