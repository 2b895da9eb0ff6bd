// Stamps record the inputs of a step's last run. A step removes its stamp at the start and writes
// it at the end, so an interrupted step is repeated.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "./project.mjs";

const stampsDir = join(cacheDir, "stamps");

export function stampIs(step, key) {
  try {
    return readFileSync(join(stampsDir, step), "utf8") === key;
  } catch {
    return false;
  }
}

export function removeStamp(step) {
  rmSync(join(stampsDir, step), { force: true });
}

export function writeStamp(step, key) {
  mkdirSync(stampsDir, { recursive: true });
  const next = join(stampsDir, `${step}.${process.pid}`);
  writeFileSync(next, key);
  renameSync(next, join(stampsDir, step));
}

export function keyOf(files, texts) {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text}\0`);
  for (const file of files) {
    const bytes = readFileSync(file);
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

export function filesUnder(folder, isWanted) {
  const found = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "build") found.push(...filesUnder(path, isWanted));
    else if (entry.isFile() && isWanted(entry.name)) found.push(path);
  }
  return found.sort();
}
