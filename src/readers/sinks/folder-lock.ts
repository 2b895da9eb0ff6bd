// Locks a folder. A file next to the lock contains the holder, so that an operator can find a
// frozen process.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { type FileLock, takeFileLock } from "../../platform/base/files.ts";
import { StandbyError } from "./sink-target.ts";

/** Locks the folder. If it is locked, throws a StandbyError with `busy` and the holder. */
export function lockFolder(folder: string, pid: number, busy: string): FileLock {
  const lock = takeFileLock(path.join(folder, "lock"));
  const holder = path.join(folder, "holder.json");
  if (lock === "busy") throw new StandbyError(`${busy}${holderText(holder)}`);
  try {
    // The file is removed first. Otherwise, a symbolic link with its name would be followed.
    rmSync(holder, { force: true });
    const text = JSON.stringify({ pid, host: hostname(), since: new Date().toISOString() });
    writeFileSync(holder, `${text}\n`, { mode: 0o600, flag: "wx" });
  } catch {
    // The error is ignored, because the lock does not depend on this file.
  }
  return lock;
}

function holderText(file: string): string {
  try {
    const { pid, host, since } = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    if (!Number.isInteger(pid)) return "";
    return `: process ${pid} on ${host}, since ${since}. If that process is frozen, end it (kill -KILL ${pid}); this process then takes over`;
  } catch {
    return "";
  }
}
