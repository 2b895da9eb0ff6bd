// Lowers the priority of the pool's threads, which scan and inflate large bodies. Otherwise the
// large bodies of one sender delay the requests of all clients. Only Linux has a priority per
// thread.

import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/**
 * Priority steps below the event loop: a pool thread gets a third of its time if both need a CPU.
 */
const stepsBelow = 5;
const priorityMin = 19;
const tasks = "/proc/self/task";
/** libuv's name for the threads of its pool, which start with the first task of the pool. */
const poolThread = "libuv-worker\n";

/** Never rejects: the gateway also works with the usual priority. */
export async function lowerBackgroundThreads(): Promise<void> {
  try {
    const threads = await readdir(tasks);
    const names = await Promise.all(
      threads.map((thread) => readFile(`${tasks}/${thread}/comm`, "utf8").catch(() => "")),
    );
    const priority = Math.min(getPriority() + stepsBelow, priorityMin);
    for (const [index, thread] of threads.entries())
      if (names[index] === poolThread) setPriority(Number(thread), priority);
  } catch {
    // The system is not Linux, or has no /proc.
  }
}
