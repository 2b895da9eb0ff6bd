// How many files and sockets this process may have open. Node raises its soft limit to the hard one
// when it starts.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * How many descriptors are kept free of connections, for NATS, the admin port, files and libraries.
 */
const descriptorsKept = 256;

/**
 * How many connections fit under a limit of open files. Where this limit is very low, connections
 * get half of it.
 */
export function connectionsRoom(filesMax: number): number {
  return Math.max(filesMax - descriptorsKept, Math.floor(filesMax / 2));
}

/** The limit of open files: Infinity when there is none, undefined when it cannot be found out. */
export function openFilesMax(): number | undefined {
  const text = /^Max open files +(\S+)/m.exec(limitsOfProcess())?.[1] ?? softLimitOfShell();
  if (text === "unlimited") return Number.POSITIVE_INFINITY;
  return text === undefined || Number.isNaN(Number(text)) ? undefined : Number(text);
}

function limitsOfProcess(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}

function softLimitOfShell(): string | undefined {
  try {
    return execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8", timeout: 1_000 }).trim();
  } catch {
    return undefined;
  }
}
