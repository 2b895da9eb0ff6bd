// Resolves a database's name that is a symbolic link: files next to the database (the writer's
// lock, a rebuild's backup) must be next to the linked file.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";

/** As many as Linux follows. */
const linksMax = 40;

/** The file may not exist yet. Returns the name itself if links form a cycle. */
export function linkedFile(name: string): string {
  let file = name;
  for (let links = 0; links <= linksMax; links++) {
    if (!isLink(file)) return file;
    file = path.resolve(realpathSync(path.dirname(file)), readlinkSync(file));
  }
  return name;
}

function isLink(file: string): boolean {
  try {
    return lstatSync(file).isSymbolicLink();
  } catch {
    // Opening the file fails with the same error, and reports it.
    return false;
  }
}
