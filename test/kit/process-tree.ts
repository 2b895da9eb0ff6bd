// Lists the processes of this host. It uses /proc, or ps on a host without /proc.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

interface Seen {
  readonly pid: number;
  readonly parent: number;
}

export function childrenOf(parent: number): number[] {
  return running()
    .filter((one) => one.parent === parent)
    .map(({ pid }) => pid);
}

/**
 * Returns true if the process runs. A process that has ended does not count, even if its parent has
 * not waited for it.
 */
export function isRunningStill(pid: number): boolean {
  return hasProc() ? seen(String(pid)) !== undefined : running().some((one) => one.pid === pid);
}

function hasProc(): boolean {
  return existsSync("/proc/self/stat");
}

function running(): Seen[] {
  if (hasProc())
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(seen)
      .filter((one) => one !== undefined);
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" });
  return lines
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , state]) => state !== undefined && !state.startsWith("Z"))
    .map(([pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }));
}

function seen(name: string): Seen | undefined {
  try {
    // The last parenthesis is used, because the name of the program may contain any character.
    const text = readFileSync(`/proc/${name}/stat`, "utf8");
    const [state, parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || state === "X") return undefined;
    return { pid: Number(name), parent: Number(parent) };
  } catch {
    return undefined;
  }
}
