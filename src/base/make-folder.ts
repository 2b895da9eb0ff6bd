// Makes a folder and those above it. Node's own `recursive` never ends where a file system lets
// nothing be made and says that the folder above is not there, as /proc does (seen in Node 22).

import { mkdir, stat } from "node:fs/promises";
import path from "node:path";

/**
 * Fulfilled when the folder is there, whoever has made it; `mode` is that of each one it makes.
 * Rejects with the system's error.
 */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  try {
    await makeOne(folder, mode);
  } catch (error) {
    const above = path.dirname(folder);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || above === folder) throw error;
    await makeFolder(above, mode);
    await makeOne(folder, mode);
  }
}

async function makeOne(folder: string, mode: number | undefined): Promise<void> {
  try {
    await mkdir(folder, { mode });
  } catch (error) {
    const isThere = await stat(folder).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isThere) throw error;
  }
}
