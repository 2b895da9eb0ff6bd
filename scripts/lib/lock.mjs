// Allows one set-up at a time in one tree. The lock file contains its owner's pid and the process
// groups of the owner's programs. Another set-up takes the lock after all of them have ended.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, isGroupAlive } from "./processes.mjs";
import { announce, cacheDir, SetupError } from "./project.mjs";

const lockFile = join(cacheDir, "setup.lock");
const waitMsMax = 20 * 60_000;

export async function takeLock({ throwIfInterrupted }) {
  try {
    // Not recursive, because that reports a read-only file system as ENOENT.
    mkdirSync(cacheDir);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  const deadline = Date.now() + waitMsMax;
  let lastSaid;
  while (!tryTake()) {
    const owner = readOwner();
    const holder = owner === undefined ? undefined : holderOf(owner);
    if (holder !== undefined) {
      if (holder !== lastSaid) announce(`waiting for ${holder}`);
      lastSaid = holder;
      if (Date.now() > deadline)
        throw new SetupError(`it does not end, stop it and try again: ${holder}`);
      await new Promise((done) => setTimeout(done, 200));
      throwIfInterrupted();
    } else if (owner !== undefined) {
      removeStale(owner);
    }
  }
  return () => {
    if (readOwner()?.pid === process.pid) rmSync(lockFile, { force: true });
  };
}

export function noteGroups(groups) {
  const own = `${lockFile}.${process.pid}`;
  writeFileSync(own, `${[process.pid, ...groups].join("\n")}\n`);
  renameSync(own, lockFile);
}

function tryTake() {
  const own = `${lockFile}.${process.pid}`;
  writeFileSync(own, `${process.pid}\n`);
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
    const text = readFileSync(lockFile, "utf8");
    const [pid, ...groups] = text.trim().split("\n").map(Number);
    return { text, pid, groups };
  } catch {
    return undefined;
  }
}

function holderOf({ pid, groups }) {
  if (isAlive(pid)) return `the set-up that runs as process ${pid}`;
  const left = groups.find(isGroupAlive);
  return left === undefined ? undefined : `what a killed set-up left running as process ${left}`;
}

function removeStale(owner) {
  // Only one of several set-ups can rename the stale lock.
  const aside = `${lockFile}.stale.${process.pid}`;
  try {
    renameSync(lockFile, aside);
  } catch {
    return;
  }
  if (readFileSync(aside, "utf8") !== owner.text) {
    try {
      linkSync(aside, lockFile);
    } catch {
      // Another set-up has taken the lock since the rename.
    }
  }
  rmSync(aside, { force: true });
}
