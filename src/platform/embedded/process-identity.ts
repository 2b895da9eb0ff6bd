// Tells whether a process noted down earlier still runs. Pids are given out again, also across
// reboots, so a pid names a process only together with its start time.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** The parts of `process` that main.ts lends; only main.ts may touch `process` itself. */
export interface ProcessHost {
  readonly pid: number;
  /**
   * Node's `process.kill`. Signal 0 only asks whether the process is there. Throws ESRCH or EPERM.
   */
  kill(pid: number, signal: NodeJS.Signals | 0): unknown;
  /** These are not there on Windows. */
  getuid?: () => number;
  initgroups?: (user: number, extraGroup: number) => void;
  setgroups?: (groups: readonly number[]) => void;
  setgid?: (gid: number) => void;
  setuid?: (uid: number) => void;
}

export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; empty where the platform did not tell. */
  readonly startedAt: string;
}

const pollMs = 15;

/**
 * The boot and the pid namespace: within both, a pid means the same process as it does here. A part
 * is empty where the platform does not tell it.
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

/**
 * Waits until the process has ended. Fulfilled at once when its pid is another process's by now.
 */
export async function untilGone(identity: ProcessIdentity, host: ProcessHost): Promise<void> {
  while (isRunning(identity, host)) await delay(pollMs);
}

/**
 * The start time of the process; "" if it cannot be told, undefined for a zombie and for no
 * process.
 */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The fields after the command's name, which stands in brackets and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}:${fields[19]}`;
  } catch {
    // Where there is a /proc, a process without an entry has ended since `identify` found it.
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
