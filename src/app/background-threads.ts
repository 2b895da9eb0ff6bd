// Gives the threads of the pool, which scan and inflate large bodies, a lower priority than the
// event loop and than a nats-server beside it. Without that, where threads outnumber processors,
// everybody's requests wait for a processor behind one sender's large bodies. Only Linux has a
// priority for each thread; elsewhere nothing is changed.

import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/**
 * How many steps of priority the threads of the pool are below the event loop. Where both want a
 * processor, a thread of the pool gets a third of what the event loop gets; where nobody else wants
 * the processor, all of it.
 */
const stepsBelow = 5;
const priorityMin = 19;
const tasks = "/proc/self/task";
/**
 * The name that libuv gives to the threads of its pool. The threads begin with the pool's first
 * work, at the latest when this folder is read.
 */
const poolThread = "libuv-worker\n";

/**
 * Fulfilled when the threads have the lower priority. Never rejects: where the system does not
 * allow it, that is no fault.
 */
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
    // Not Linux, or no /proc.
  }
}
