// The file that a database's name stands for, where the name is a symbolic link: what lies beside
// the database (the writer's lock, what a rebuild keeps) has to lie beside that file.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";

/** As many as Linux follows. */
const linksMax = 40;

/** Also where there is no such file yet; the name itself where links go in a circle. */
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
    // Whoever opens it meets the same fault, and says what it is.
    return false;
  }
}
