// Checks whether a recorded process still runs. A pid alone is not enough, because the system
// reuses pids. So the start time is compared too.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

export interface ProcessHost {
  readonly pid: number;
  kill(pid: number, signal: NodeJS.Signals | 0): unknown;
  getuid?: () => number;
}

export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
}

const pollMs = 15;

/** Returns undefined if the process does not exist or has already ended (a zombie). */
export function identify(pid: number, host: ProcessHost): ProcessIdentity | undefined {
  try {
    host.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return undefined;
  }
  const startedAt = startOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export function isRunning(identity: ProcessIdentity, host: ProcessHost): boolean {
  const now = identify(identity.pid, host);
  return now !== undefined && (identity.startedAt === "" || now.startedAt === identity.startedAt);
}

export async function untilGone(identity: ProcessIdentity, host: ProcessHost): Promise<void> {
  while (isRunning(identity, host)) await delay(pollMs);
}

function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the command is in parentheses, and may itself contain any characters.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}:${fields[19]}`;
  } catch {
    return existsSync("/proc/self/stat") ? undefined : startFromPs(pid);
  }
}

function startFromPs(pid: number): string {
  try {
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "";
  }
}
