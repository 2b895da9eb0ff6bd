// Keeps N workers running on one public port. It starts workers, replaces a worker that ends or
// does not respond, collects their metrics, and drains them. If a worker cannot start at first, the
// whole start fails. If a replacement cannot start, it is started again later.

import type { ClientWarning } from "../../platform/base/client-warning.ts";
import type { Log } from "../../platform/base/log.ts";
import { processPauses, restartLoop } from "../../platform/base/retry.ts";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type { Config } from "../../platform/settings/config.ts";
import { MergedMetrics } from "./merged-metrics.ts";
import {
  type Listening,
  startWorkerProcess,
  type WorkerAnswers,
  type WorkerProcess,
  type WorkerProcessOptions,
  type WorkerRole,
} from "./worker-process.ts";

interface SupervisorOptions {
  readonly config: Config;
  readonly program: WorkerProcessOptions["program"];
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface WorkersReadiness {
  readonly ready: number;
  readonly workers: number;
  readonly reasons: readonly string[];
}

const metricsTimeoutMs = 1_000;
const readinessTimeoutMs = 1_250;
const closeGraceMs = 4_000;

export class Supervisor {
  readonly #config: Config;
  readonly #program: WorkerProcessOptions["program"];
  readonly #log: Log;
  readonly #signal: AbortSignal;
  readonly #closing = new AbortController();
  readonly #merged = new MergedMetrics();
  readonly #running = new Map<number, WorkerProcess>();
  readonly #loops: Promise<void>[] = [];
  readonly #silence: SilenceWatch;
  #port: number;

  constructor({ config, program, log, signal }: SupervisorOptions) {
    this.#config = config;
    this.#program = program;
    this.#log = log;
    this.#signal = signal;
    this.#silence = new SilenceWatch({ running: this.#running, log });
    this.#port = config.port;
  }

  async start(): Promise<Listening> {
    const startAborted = rejectionOf(this.#signal);
    const indexes = this.#indexes();
    const first = await Promise.race([this.#startFirst(0, "first"), startAborted]);
    this.#port = first.port;
    await Promise.race([
      Promise.all(indexes.slice(1).map((index) => this.#startFirst(index, "joining"))),
      startAborted,
    ]);
    return first;
  }

  async #startFirst(index: number, role: WorkerRole): Promise<Listening> {
    const worker = this.#launch(index, role);
    const listening = await worker.listening;
    this.#loops.push(this.#keepRunning(index, worker));
    return listening;
  }

  #launch(index: number, role: WorkerRole): WorkerProcess {
    const worker = startWorkerProcess({
      program: this.#program,
      start: { type: "start", index, role, config: { ...this.#config, port: this.#port } },
      onMetrics: (metrics) => this.#merged.update(index, metrics),
    });
    this.#running.set(index, worker);
    worker.listening.then(
      () => this.#log.info({ worker: index, pid: worker.pid }, "worker accepts connections"),
      () => {},
    );
    void worker.ended.then(() => {
      this.#running.delete(index);
      this.#merged.ended(index);
    });
    return worker;
  }

  async #keepRunning(index: number, first: WorkerProcess): Promise<void> {
    let started: WorkerProcess | undefined = first;
    let end: object = {};
    await restartLoop(
      async () => {
        const worker = started ?? this.#replace(index);
        started = undefined;
        end = { pid: worker.pid, ...(await worker.ended) };
      },
      {
        signal: this.#closing.signal,
        ...processPauses,
        ended: (waitMs, error) => {
          const how = error === undefined ? end : { err: error };
          this.#log.error(
            { worker: index, ...how, waitMs },
            error === undefined
              ? "worker ended: starting a replacement"
              : "worker could not be started: retrying",
          );
        },
      },
    );
  }

  #replace(index: number): WorkerProcess {
    this.#merged.restarted();
    return this.#launch(index, "joining");
  }

  async readiness(): Promise<WorkersReadiness> {
    const found = await Promise.all(this.#indexes().map((index) => this.#reasonsOf(index)));
    return {
      ready: found.filter((reasons) => reasons.length === 0).length,
      workers: this.#config.workers,
      reasons: found.flatMap((reasons, index) =>
        reasons.map((reason) => `worker ${index}: ${reason}`),
      ),
    };
  }

  async #reasonsOf(index: number): Promise<readonly string[]> {
    const worker = this.#running.get(index);
    if (worker === undefined) return ["not running"];
    return (await worker.ask("readiness", readinessTimeoutMs)) ?? ["no answer"];
  }

  async warnings(): Promise<string[]> {
    return [...new Set((await this.#askAll("warnings", readinessTimeoutMs)).flat())];
  }

  /**
   * Returns the metrics of all workers. If a worker does not answer in time, its last metrics are
   * used.
   */
  async metrics(supervisor: readonly MetricSnapshot[]): Promise<MetricSnapshot[]> {
    await this.#collect("metrics");
    return this.#merged.all(supervisor);
  }

  /**
   * Returns only counts. Unlike `metrics`, this does not reset gauges that cover the time since the
   * last call.
   */
  async counts(): Promise<MetricSnapshot[]> {
    await this.#collect("counts");
    return this.#merged.all([]).filter(({ type }) => type !== "gauge");
  }

  async clientWarnings(): Promise<ClientWarning[]> {
    const found = await this.#askAll("clientWarnings", metricsTimeoutMs);
    return found.flat().toSorted((left, right) => left.atMs - right.atMs);
  }

  async #askAll<About extends keyof WorkerAnswers>(
    about: About,
    timeoutMs: number,
  ): Promise<WorkerAnswers[About][]> {
    const asked = [...this.#running.values()].map((worker) => worker.ask(about, timeoutMs));
    return (await Promise.all(asked)).filter((answer) => answer !== undefined);
  }

  async #collect(about: "counts" | "metrics"): Promise<void> {
    await Promise.all(
      [...this.#running].map(async ([index, worker]) => {
        const answer = await worker.ask(about, metricsTimeoutMs);
        if (answer !== undefined && this.#running.get(index) === worker)
          this.#merged.update(index, answer);
      }),
    );
  }

  async close(drainDelayMs = this.#config.drainDelayMs): Promise<void> {
    this.#closing.abort();
    this.#silence.stop();
    const workers = [...this.#running.values()];
    for (const worker of workers) worker.stop(drainDelayMs);
    const deadline = setTimeout(
      () => this.#killAll(),
      drainDelayMs + this.#config.drainTimeoutMs + closeGraceMs,
    );
    await Promise.all(workers.map((worker) => worker.ended));
    clearTimeout(deadline);
    await Promise.all(this.#loops);
  }

  #killAll(): void {
    for (const [index, worker] of this.#running) {
      this.#log.error({ worker: index, pid: worker.pid }, "worker did not end in time: killed");
      worker.kill();
    }
  }

  #indexes(): number[] {
    return Array.from({ length: this.#config.workers }, (_, index) => index);
  }
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  const rejection = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  rejection.catch(() => {});
  return rejection;
}

interface SilenceWatchOptions {
  readonly running: ReadonlyMap<
    number,
    Pick<WorkerProcess, "pid" | "messagesRead" | "ask" | "kill">
  >;
  readonly log: Pick<Log, "error">;
}

const checkEveryMs = 1_000;
/**
 * A worker that sends nothing during this number of checks is killed. Workers report every second.
 */
const silentChecksMax = 10;
/** A process that has not sent any message may still be loading its code, so it gets more time. */
const loadingChecksMax = 60;

interface LastSeen {
  messagesRead: number;
  silentChecks: number;
}

/**
 * Kills workers that do not respond, because the kernel continues to give them connections. It
 * counts checks instead of time. Otherwise, a supervisor that was stopped with Ctrl-Z would kill
 * its workers when it continues.
 */
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
          "worker did not answer in time: killed",
        );
        last.silentChecks = 0;
        worker.kill();
      } else if (last.silentChecks > 0) {
        // A starting worker that waits for NATS sends no reports, but it answers this request.
        void worker.ask("counts", checkEveryMs);
      }
    }
  }
}
