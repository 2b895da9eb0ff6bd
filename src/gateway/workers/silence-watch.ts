// Kills a worker that has stopped answering, because the kernel continues to give it connections
// that would never be answered. The supervisor starts a replacement. The watch counts its own
// checks instead of reading a clock. With a clock, a supervisor that was itself stopped for a
// while, for example by Ctrl-Z, would kill workers that are alive.

import type { Log } from "../../platform/base/log.ts";
import type { WorkerProcess } from "./worker-process.ts";

interface SilenceWatchOptions {
  /** The running workers by index. The watch reads the map at each check. */
  readonly running: ReadonlyMap<
    number,
    Pick<WorkerProcess, "pid" | "messagesRead" | "ask" | "kill">
  >;
  readonly log: Pick<Log, "error">;
}

const checkEveryMs = 1_000;
/**
 * Number of consecutive checks without a message after which a worker is killed. A worker sends a
 * report every second, even while it drains.
 */
const silentChecksMax = 10;
/**
 * Number of consecutive checks after which a process is killed that has not sent any message yet.
 * Such a process is still loading its program, perhaps on a busy machine.
 */
const loadingChecksMax = 60;

interface LastSeen {
  messagesRead: number;
  silentChecks: number;
}

export class SilenceWatch {
  readonly #running: SilenceWatchOptions["running"];
  readonly #log: Pick<Log, "error">;
  readonly #lastSeen = new WeakMap<object, LastSeen>();
  readonly #timer: NodeJS.Timeout;

  /** Starts the watch, which runs until `stop` is called. */
  constructor({ running, log }: SilenceWatchOptions) {
    this.#running = running;
    this.#log = log;
    this.#timer = setInterval(() => this.#check(), checkEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    for (const [index, worker] of this.#running) {
      const last = this.#lastSeen.get(worker) ?? { messagesRead: 0, silentChecks: 0 };
      this.#lastSeen.set(worker, last);
      last.silentChecks = worker.messagesRead === last.messagesRead ? last.silentChecks + 1 : 0;
      last.messagesRead = worker.messagesRead;
      if (last.silentChecks >= (worker.messagesRead === 0 ? loadingChecksMax : silentChecksMax)) {
        this.#log.error(
          { worker: index, pid: worker.pid, checks: last.silentChecks },
          "worker does not answer: killed",
        );
        last.silentChecks = 0;
        worker.kill();
      } else if (last.silentChecks > 0) {
        // A worker that waits for NATS at its start has nothing to report, but answers a request.
        void worker.ask("counts", checkEveryMs);
      }
    }
  }
}
