// Gives processes cores of their own, so that a measurement can say what a server does that shares
// none with the client. Linux's taskset does it, which is in every distribution's util-linux.

import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** The first core for the processes with these ids, the others for what else is measured. */
interface Apart {
  readonly alone: readonly number[];
  readonly others: readonly number[];
}

/**
 * Puts the threads of `alone` on the first core and those of `others`, and this process with all
 * that it starts from now on, on the other ones. Returns the function that gives this process all
 * cores back; undefined where there is one core, or no taskset.
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
