// Locks a folder. A file next to the lock names the holder, for an operator who waits for a frozen
// process.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { type FileLock, takeFileLock } from "../../platform/base/files.ts";
import { StandbyError } from "./sink-target.ts";

/** If the folder is locked, throws a StandbyError with `busy` and the holder. */
export function lockFolder(folder: string, pid: number, busy: string): FileLock {
  const lock = takeFileLock(path.join(folder, "lock"));
  const holder = path.join(folder, "holder.json");
  if (lock === "busy") throw new StandbyError(`${busy}${holderText(holder)}`);
  try {
    // A link under the file's name must not be followed.
    rmSync(holder, { force: true });
    const text = JSON.stringify({ pid, host: hostname(), since: new Date().toISOString() });
    writeFileSync(holder, `${text}\n`, { mode: 0o600, flag: "wx" });
  } catch {
    // The lock does not depend on this file.
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
