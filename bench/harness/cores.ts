// Assigns processes to separate cores, to measure a server that shares none with the client. Uses
// Linux's taskset, which is in every distribution's util-linux.

import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** The ids of the processes for the first core, and of those for the other cores. */
interface Apart {
  readonly alone: readonly number[];
  readonly others: readonly number[];
}

/**
 * Puts the threads of `alone` on the first core, and those of `others`, this process and its future
 * children on the others. Returns the function that undoes this; undefined if there is one core, or
 * no taskset.
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
