// Keeps N workers on one public port: starts them, starts another in place of one that dies or does
// not answer, asks them all for their numbers, and drains them together. The start is all or
// nothing; later, a worker that does not start is tried again. Handles no request itself.

import type { ClientWarning } from "../../platform/base/client-warning.ts";
import type { Log } from "../../platform/base/log.ts";
import { processPauses, restartLoop } from "../../platform/base/retry.ts";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type { Config } from "../../platform/settings/config.ts";
import { MergedMetrics } from "./merged-metrics.ts";
import type { Listening, WorkerAnswers, WorkerRole } from "./messages.ts";
import { SilenceWatch } from "./silence-watch.ts";
import {
  startWorkerProcess,
  type WorkerProcess,
  type WorkerProcessOptions,
} from "./worker-process.ts";

interface SupervisorOptions {
  /** The settings, as the workers get them. */
  readonly config: Config;
  readonly program: WorkerProcessOptions["program"];
  readonly log: Log;
  /** Aborting it gives up a start. The start then rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

interface WorkersReadiness {
  /** Workers that can store events now. */
  readonly ready: number;
  readonly workers: number;
  /** What is wrong, worker by worker. */
  readonly reasons: readonly string[];
}

const metricsTimeoutMs = 1_000;
/** A worker's own check may take a second. */
const readinessTimeoutMs = 1_250;
/**
 * How much time a worker has, after the delay and the timeout of its drain, to close what it holds.
 */
const closeGraceMs = 4_000;

export class Supervisor {
  readonly #config: Config;
  readonly #program: WorkerProcessOptions["program"];
  readonly #log: Log;
  readonly #signal: AbortSignal;
  readonly #closing = new AbortController();
  readonly #merged = new MergedMetrics();
  readonly #running = new Map<number, WorkerProcess>();
  readonly #kept: Promise<void>[] = [];
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

  /**
   * Starts all workers. Returns what the first one reported. Rejects with the words of the first worker that
   * cannot start.
   */
  async start(): Promise<Listening> {
    const giveUp = rejectionOf(this.#signal);
    const indexes = this.#indexes();
    // The first worker finds out that the port is free and which number it has, and makes the
    // streams. The others start once that is done.
    const first = await Promise.race([this.#startFirst(0, "first"), giveUp]);
    this.#port = first.port;
    await Promise.race([
      Promise.all(indexes.slice(1).map((index) => this.#startFirst(index, "joining"))),
      giveUp,
    ]);
    return first;
  }

  async #startFirst(index: number, role: WorkerRole): Promise<Listening> {
    const worker = this.#launch(index, role);
    const listening = await worker.listening;
    this.#kept.push(this.#keepRunning(index, worker));
    return listening;
  }

  #launch(index: number, role: WorkerRole): WorkerProcess {
    const worker = startWorkerProcess({
      program: this.#program,
      start: { type: "start", index, role, config: { ...this.#config, port: this.#port } },
      onMetrics: (metrics) => this.#merged.heard(index, metrics),
    });
    this.#running.set(index, worker);
    worker.listening.then(
      () => this.#log.info({ worker: index, pid: worker.pid }, "worker takes connections"),
      () => {},
    );
    // `ended` never rejects.
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
              ? "worker ended: starting another in its place"
              : "worker could not be started",
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

  /**
   * The warnings of all workers for an operator, each once: all workers follow one registry, so
   * most of them say the same.
   */
  async warnings(): Promise<string[]> {
    return [...new Set((await this.#askAll("warnings", readinessTimeoutMs)).flat())];
  }

  /**
   * The metrics of all workers as those of one gateway. A worker that does not answer in time
   * counts with the numbers that it last sent.
   */
  async metrics(supervisor: readonly MetricSnapshot[]): Promise<MetricSnapshot[]> {
    await this.#hear("metrics");
    return this.#merged.all(supervisor);
  }

  /**
   * The counters and histograms among those metrics. Asking for them begins no new window of any
   * gauge.
   */
  async counts(): Promise<MetricSnapshot[]> {
    await this.#hear("counts");
    return this.#merged.all([]).filter(({ type }) => type !== "gauge");
  }

  /** The client warnings of all workers, the newest last. */
  async clientWarnings(): Promise<ClientWarning[]> {
    const found = await this.#askAll("clientWarnings", metricsTimeoutMs);
    return found.flat().toSorted((left, right) => left.atMs - right.atMs);
  }

  /** Asks all workers, and gives the answers that have come in time. */
  async #askAll<About extends keyof WorkerAnswers>(
    about: About,
    timeoutMs: number,
  ): Promise<WorkerAnswers[About][]> {
    const asked = [...this.#running.values()].map((worker) => worker.ask(about, timeoutMs));
    return (await Promise.all(asked)).filter((answer) => answer !== undefined);
  }

  async #hear(about: "counts" | "metrics"): Promise<void> {
    await Promise.all(
      [...this.#running].map(async ([index, worker]) => {
        const answer = await worker.ask(about, metricsTimeoutMs);
        // A worker that has ended meanwhile has had its counts added already.
        if (answer !== undefined && this.#running.get(index) === worker)
          this.#merged.heard(index, answer);
      }),
    );
  }

  /**
   * Drains all workers, after the delay, and kills those that take too long. Without `drainDelayMs`
   * the delay is the setting.
   */
  async close(drainDelayMs = this.#config.drainDelayMs): Promise<void> {
    this.#closing.abort();
    // The silence watch ends here, because a worker that drains may take its time. Those that
    // outlast the deadline are killed below.
    this.#silence.stop();
    const workers = [...this.#running.values()];
    for (const worker of workers) worker.stop(drainDelayMs);
    const deadline = setTimeout(
      () => this.#killAll(),
      drainDelayMs + this.#config.drainTimeoutMs + closeGraceMs,
    );
    await Promise.all(workers.map((worker) => worker.ended));
    clearTimeout(deadline);
    await Promise.all(this.#kept);
  }

  #killAll(): void {
    for (const [index, worker] of this.#running) {
      this.#log.error({ worker: index, pid: worker.pid }, "worker does not end: killed");
      worker.kill();
    }
  }

  #indexes(): number[] {
    return Array.from({ length: this.#config.workers }, (_, index) => index);
  }
}

/** Rejects with the signal's reason when it aborts. */
function rejectionOf(signal: AbortSignal): Promise<never> {
  const rejection = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  rejection.catch(() => {});
  return rejection;
}
