// Kills a worker that has stopped answering: the kernel goes on giving it connections, and nobody
// would ever answer them. The supervisor starts another in its place. The watch counts its own
// checks instead of reading a clock: a supervisor that was itself stopped for a while, as by
// Ctrl-Z, would else take its workers for silent.

import type { Log } from "../../platform/base/log.ts";
import type { WorkerProcess } from "./worker-process.ts";

interface SilenceWatchOptions {
  /** The running workers by index. The map is read anew at each check. */
  readonly running: ReadonlyMap<number, Pick<WorkerProcess, "pid" | "said" | "ask" | "kill">>;
  readonly log: Pick<Log, "error">;
}

const checkEveryMs = 1_000;
/**
 * A worker that has said nothing at this many checks in a row is killed. A worker reports by itself
 * every second, also while it drains.
 */
const silentChecksMax = 10;
/**
 * The same limit for a process that has never said anything. It is still loading its program,
 * perhaps on a machine that has much else to do.
 */
const loadingChecksMax = 60;

interface Heard {
  said: number;
  silentChecks: number;
}

export class SilenceWatch {
  readonly #running: SilenceWatchOptions["running"];
  readonly #log: Pick<Log, "error">;
  readonly #heard = new WeakMap<object, Heard>();
  readonly #timer: NodeJS.Timeout;

  /** Watches until it is stopped. */
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
      const last = this.#heard.get(worker) ?? { said: 0, silentChecks: 0 };
      this.#heard.set(worker, last);
      last.silentChecks = worker.said === last.said ? last.silentChecks + 1 : 0;
      last.said = worker.said;
      if (last.silentChecks >= (worker.said === 0 ? loadingChecksMax : silentChecksMax)) {
        this.#log.error(
          { worker: index, pid: worker.pid, checks: last.silentChecks },
          "worker does not answer: killed",
        );
        last.silentChecks = 0;
        worker.kill();
      } else if (last.silentChecks > 0) {
        // A worker that waits for NATS at its start has nothing to report, but answers a question.
        void worker.ask("counts", checkEveryMs);
      }
    }
  }
}
