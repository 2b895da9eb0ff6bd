// Who has a lock, in a file beside it: the kernel does not say, and whoever waits for one that
// does nothing any more is to know which process that is. Decides nothing: the lock does.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** ISO 8601. */
  readonly since: string;
}

const ownerOnly = 0o600;

/** To be called by who has just got the lock. Where nothing can be written, nobody will know. */
export function noteHolder(file: string, pid: number): void {
  const holder: Holder = { pid, host: hostname(), since: new Date().toISOString() };
  try {
    // Anew, so that a link which somebody has laid there leads nowhere.
    rmSync(file, { force: true });
    writeFileSync(file, `${JSON.stringify(holder)}\n`, { mode: ownerOnly, flag: "wx" });
  } catch {}
}

/** The end of a sentence on who has it and what to do; empty where nobody knows. */
export function holderText(file: string): string {
  const holder = holderIn(file);
  if (holder === undefined) return "";
  const { pid, host, since } = holder;
  return `: process ${pid} on ${host}, since ${since}. Where that one is frozen, end it (kill -KILL ${pid}): this one takes over`;
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
