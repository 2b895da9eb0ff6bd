// Writes a file so that it has the old text or the new one, whatever happens meanwhile: a process
// that is killed, or a power cut.

import { open, rename } from "node:fs/promises";
import path from "node:path";

/** Fulfilled when the text is on disk under the file's name. Rejects with the system's error. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  const handle = await open(temporary, "w", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await sync(path.dirname(path.resolve(file)));
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
