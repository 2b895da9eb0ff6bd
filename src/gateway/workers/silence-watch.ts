// Kills a worker that does not answer, because the kernel continues to give it connections. Counts
// its own checks: by the clock, a supervisor that was stopped for a while, for example by Ctrl-Z,
// would kill workers that are alive.

import type { Log } from "../../platform/base/log.ts";
import type { WorkerProcess } from "./worker-process.ts";

interface SilenceWatchOptions {
  readonly running: ReadonlyMap<
    number,
    Pick<WorkerProcess, "pid" | "messagesRead" | "ask" | "kill">
  >;
  readonly log: Pick<Log, "error">;
}

const checkEveryMs = 1_000;
/** Checks without a message. A worker sends a report every second, even while it drains. */
const silentChecksMax = 10;
/** Checks without any message yet: the process loads its program, perhaps on a busy machine. */
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
