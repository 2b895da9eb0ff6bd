// Writes a file so that it has the old text or the new one, whatever happens meanwhile: a process
// that is killed, or a power cut.

import { open, rename } from "node:fs/promises";
import path from "node:path";

/** Fulfilled when the text is on disk under the file's name. Rejects with the system's error. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  const handle = await open(temporary, "w");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  const folder = await open(path.dirname(path.resolve(file)), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
