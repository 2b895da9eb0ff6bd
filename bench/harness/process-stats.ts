// The CPU and memory of a process from /proc. Linux only; on other systems the figures are missing,
// never estimated.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Fixed at 100 in every Linux ABI that Node runs on. */
const ticksPerSecond = 100;
const bytesPerKibibyte = 1_024;

/** User and system time in seconds. NaN if the process has ended, or without /proc. */
export function cpuSeconds(pid: number | undefined): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return Number.NaN;
  }
}

export function treeCpuSeconds(pid: number | undefined): number {
  return processTree(pid).reduce<number>((sum, each) => sum + cpuSeconds(each), 0);
}

/** Returns the pids of a process and all its running descendants; [pid] without /proc. */
export function processTree(pid: number | undefined): (number | undefined)[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)];
}

function childrenOf(pid: number | undefined): number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const lists = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8"));
    return lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
  } catch {
    return [];
  }
}

export function memoryBytes(pid: number | undefined, field: "VmRSS" | "VmHWM"): number {
  try {
    const match = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(
      readFileSync(`/proc/${pid}/status`, "utf8"),
    );
    return Number(match?.[1] ?? Number.NaN) * bytesPerKibibyte;
  } catch {
    return Number.NaN;
  }
}

export function writtenBytes(pid: number | undefined): number {
  try {
    const text = readFileSync(`/proc/${pid}/io`, "utf8");
    return Number(/^write_bytes: (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
  } catch {
    return Number.NaN;
  }
}

/** Resets VmHWM to the present resident memory. Returns false if the kernel does not allow it. */
export function resetPeakMemory(pid: number | undefined): boolean {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
    return true;
  } catch {
    return false;
  }
}

/** Includes time that other guests of the machine's host used. */
export function machineCpuSeconds(): number {
  try {
    const fields = (/^cpu +(.*)$/m.exec(readFileSync("/proc/stat", "utf8"))?.[1] ?? "")
      .split(" ")
      .map(Number);
    const busy = fields.slice(0, 8).filter((_, place) => place !== 3 && place !== 4);
    return busy.reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond;
  } catch {
    return Number.NaN;
  }
}
