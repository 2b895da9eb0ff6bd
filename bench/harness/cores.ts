// Assigns processes to separate cores, to measure a server that shares no core with the client.
// Uses Linux's taskset from util-linux.

import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

interface Apart {
  readonly alone: readonly number[];
  readonly others: readonly number[];
}

/**
 * `alone` gets the first core. `others`, this process and its children get the other cores. Returns
 * the function that undoes this; undefined without taskset or with only one core.
 */
export function setApart({ alone, others }: Apart): (() => void) | undefined {
  const cores = availableParallelism();
  if (cores < 2) return undefined;
  const rest = `1-${cores - 1}`;
  try {
    for (const pid of alone) pin(pid, "0");
    for (const pid of [...others, process.pid]) pin(pid, rest);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return () => pin(process.pid, `0-${cores - 1}`);
}

function pin(pid: number, cores: string): void {
  execFileSync("taskset", ["-a", "-c", "-p", cores, String(pid)], { stdio: "ignore" });
}
