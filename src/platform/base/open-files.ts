// Reads how many files this process may open. Node has already raised the soft limit to the hard
// limit.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const descriptorsReserved = 256;

export function connectionsRoom(filesMax: number): number {
  return Math.max(filesMax - descriptorsReserved, Math.floor(filesMax / 2));
}

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
