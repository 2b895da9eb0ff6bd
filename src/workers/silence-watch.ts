// Kills a worker that has stopped answering: the kernel goes on giving it connections, and nobody
// would ever answer them. The supervisor starts another in its place. Counts its own looks instead
// of reading a clock, so that a supervisor that was itself stopped for a while, as by Ctrl-Z, takes
// no worker for silent.

import type { Log } from "../base/log.ts";
import type { WorkerProcess } from "./worker-process.ts";

export interface SilenceWatchOptions {
  /** Looked at anew each time. */
  readonly running: ReadonlyMap<number, Pick<WorkerProcess, "pid" | "said" | "ask" | "kill">>;
  readonly log: Pick<Log, "error">;
}

const lookEveryMs = 1_000;
/**
 * Looks in a row at which it had said nothing. A worker reports by itself every second, also while
 * it drains.
 */
const silentLooksMax = 10;
/**
 * The same for a process that has never said anything: it loads its program, perhaps on a machine
 * that has much else to do.
 */
const loadingLooksMax = 60;

interface Heard {
  said: number;
  silentLooks: number;
}

export function createSilenceWatch({ running, log }: SilenceWatchOptions): { stop(): void } {
  const heard = new WeakMap<object, Heard>();

  function look(): void {
    for (const [index, worker] of running) {
      const last = heard.get(worker) ?? { said: 0, silentLooks: 0 };
      heard.set(worker, last);
      last.silentLooks = worker.said === last.said ? last.silentLooks + 1 : 0;
      last.said = worker.said;
      if (last.silentLooks >= (worker.said === 0 ? loadingLooksMax : silentLooksMax)) {
        log.error(
          { worker: index, pid: worker.pid, looks: last.silentLooks },
          "worker does not answer: killed",
        );
        last.silentLooks = 0;
        worker.kill();
      } else if (last.silentLooks > 0) {
        // One that waits for NATS at its start has nothing to report, but answers.
        void worker.ask("counts", lookEveryMs);
      }
    }
  }

  const timer = setInterval(look, lookEveryMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
