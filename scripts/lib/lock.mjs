// One set-up at a time in one tree. The lock is a file that holds its owner's pid; the lock of an owner that died is
// taken over. It appears whole (linked from a finished file), so it never reads as empty.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { announce, cacheDir, SetupError } from "./project.mjs";

const lockFile = join(cacheDir, "setup.lock");
const waitMsMax = 20 * 60_000;

/** Waits for its turn; answers the function that gives the lock back. */
export async function takeLock() {
  mkdirSync(cacheDir, { recursive: true });
  const deadline = Date.now() + waitMsMax;
  let said = false;
  while (!tryTake()) {
    const owner = readOwner();
    if (owner !== undefined && isAlive(owner)) {
      if (!said) announce(`waiting for the set-up that runs as process ${owner}`);
      said = true;
      if (Date.now() > deadline) throw new SetupError(`another set-up (process ${owner}) does not end: stop it`);
      await new Promise((done) => setTimeout(done, 200));
    } else if (owner !== undefined) {
      removeStale(owner);
    }
  }
  return () => {
    if (readOwner() === process.pid) rmSync(lockFile, { force: true });
  };
}

function tryTake() {
  const own = `${lockFile}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  try {
    linkSync(own, lockFile);
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    return false;
  } finally {
    rmSync(own, { force: true });
  }
}

function readOwner() {
  try {
    return Number(readFileSync(lockFile, "utf8"));
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function removeStale(owner) {
  // Moved away before it is looked at again: of two that find it stale, only one moves it, and whoever moved a lock
  // that was fresh after all puts it back.
  const aside = `${lockFile}.stale.${process.pid}`;
  try {
    renameSync(lockFile, aside);
  } catch {
    return;
  }
  if (Number(readFileSync(aside, "utf8")) !== owner) {
    try {
      linkSync(aside, lockFile);
    } catch {
      // A third set-up took it in between; the one moved away waits for that in its own steps' stamps.
    }
  }
  rmSync(aside, { force: true });
}
