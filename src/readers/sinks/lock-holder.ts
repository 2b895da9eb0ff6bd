// Names the holder of a lock in a file next to it, for an operator who waits for a frozen process.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

const ownerOnly = 0o600;

/** Called by the process that has just taken the lock. An unwritable file is ignored. */
export function noteHolder(file: string, pid: number): void {
  const holder: Holder = { pid, host: hostname(), since: new Date().toISOString() };
  try {
    // A link under the file's name must not be followed.
    rmSync(file, { force: true });
    writeFileSync(file, `${JSON.stringify(holder)}\n`, { mode: ownerOnly, flag: "wx" });
  } catch {}
}

/** Returns the end of a sentence: the holder of the lock, and what to do; empty if unknown. */
export function holderText(file: string): string {
  const holder = holderIn(file);
  if (holder === undefined) return "";
  const { pid, host, since } = holder;
  return `: process ${pid} on ${host}, since ${since}. If that process is frozen, end it (kill -KILL ${pid}): this one takes over`;
}

function holderIn(file: string): Holder | undefined {
  try {
    const { pid, host, since } = JSON.parse(readFileSync(file, "utf8")) as Partial<Holder>;
    const isHolder = Number.isInteger(pid) && typeof host === "string" && typeof since === "string";
    return isHolder ? ({ pid, host, since } as Holder) : undefined;
  } catch {
    return undefined;
  }
}
