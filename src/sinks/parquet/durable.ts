// What a crash or a power cut leaves whole: files that appear under their names with all that is in
// them, and folders whose entries are on the disk.

import { type FileHandle, open, rename } from "node:fs/promises";
import path from "node:path";

/** Brings a file's content, or the names in a folder, to the disk. */
export async function sync(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A file appears whole under its name, or not at all. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const next = `${file}.next`;
  const handle = await open(next, "w", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, file);
  await sync(path.dirname(file));
}

/** All of the bytes, from `at` on. */
export async function writeAt(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, from, bytes.length - from, at + from);
    from += bytesWritten;
  }
}

/** What went wrong with files, in words for people. Anything else is given back as it is. */
export function fileFault(error: unknown, doing: string): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof Error) || code === undefined || !/^E[A-Z]+$/.test(code))
    return error as Error;
  const what = words[code as keyof typeof words] ?? message;
  return new Error(`${doing}: ${what} (${code})`, { cause: error });
}

const words = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of this user is used up",
  EROFS: "the file system is read-only",
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  ENOENT: "the folder, or a file in it, is gone",
  ENOTDIR: "it is no folder",
  EIO: "the disk does not read or write",
} as const;
