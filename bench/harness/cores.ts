// Assigns processes to separate cores, to measure a server that shares no core with the client.
// Uses Linux's taskset from util-linux.

import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/**
 * The ids of the processes for the first core, and the ids of the processes for the other cores.
 */
interface Apart {
  readonly alone: readonly number[];
  readonly others: readonly number[];
}

/**
 * Assigns the threads of `alone` to the first core. Assigns the threads of `others`, this process
 * and its future children to the other cores. Returns the function that undoes the assignment;
 * undefined without taskset or with only one core.
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
