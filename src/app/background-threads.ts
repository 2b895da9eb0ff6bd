// Gives the threads of the pool, which scan and inflate large bodies, a lower priority than the
// event loop and a nats-server on the same machine. Otherwise, if the threads outnumber the
// processors, the large bodies of one sender delay the requests of all clients. Only Linux has a
// priority per thread. On other systems this changes nothing.

import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/**
 * Number of priority steps of the pool's threads below the event loop. If both need a processor, a
 * thread of the pool gets a third of the time of the event loop. If the processor is otherwise
 * idle, the thread gets all of it.
 */
const stepsBelow = 5;
const priorityMin = 19;
const tasks = "/proc/self/task";
/**
 * The name that libuv gives to the threads of its pool. They start with the first task of the pool,
 * at the latest when this file reads the folder of threads.
 */
const poolThread = "libuv-worker\n";

/**
 * Lowers the priority of the threads of the pool. Never rejects: the gateway also works if the
 * system does not allow it.
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
    // The system is not Linux, or has no /proc.
  }
}
