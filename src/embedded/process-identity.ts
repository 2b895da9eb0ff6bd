// Tells whether a process noted down earlier still runs: pids are given out again, also across
// reboots, so a pid alone does not name a process. Its start time does.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** What main.ts lends of `process`, which only it may touch. */
export interface ProcessHost {
  readonly pid: number;
  /** As Node names it: signal 0 only asks. Throws ESRCH or EPERM. */
  kill(pid: number, signal: NodeJS.Signals | 0): unknown;
}

export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; empty where the platform did not tell. */
  readonly startedAt: string;
}

const pollMs = 15;

/**
 * Where pids of this process mean the same process: boot and pid namespace. Empty parts where the
 * platform does not tell.
 */
export function placeOfPids(): string {
  return `${tellOr(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim())} ${tellOr(() => readlinkSync("/proc/self/ns/pid"))}`;
}

function tellOr(tell: () => string): string {
  try {
    return tell();
  } catch {
    return "";
  }
}

/** Undefined when there is no such process, or only a dead one that nobody has reaped. */
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

/** Fulfilled at once when the pid is another process's by now. */
export async function untilGone(identity: ProcessIdentity, host: ProcessHost): Promise<void> {
  while (isRunning(identity, host)) await delay(pollMs);
}

/** The start time, "" if it cannot be told, undefined for a zombie and for none. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The fields after the command's name, which stands in brackets and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}:${fields[19]}`;
  } catch {
    // Where there is a /proc, a process that is not in it has ended since it was asked for.
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
