// Keeps N workers on one public port: starts them, starts another in place of one that dies or does
// not answer, asks them all for their numbers, and drains them together. The start is all or
// nothing; later, a worker that does not start is tried again. Handles no request itself.

import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { MetricSnapshot } from "../base/sample.ts";
import type { ClientWarning } from "../base/types.ts";
import type { Config } from "../settings/config.ts";
import { createMergedMetrics } from "./merged-metrics.ts";
import type { WorkerRole } from "./messages.ts";
import { createSilenceWatch } from "./silence-watch.ts";
import {
  startWorkerProcess,
  type WorkerProcess,
  type WorkerProcessOptions,
} from "./worker-process.ts";

export interface SupervisorOptions {
  /** As the workers get it. */
  readonly config: Config;
  readonly program: WorkerProcessOptions["program"];
  readonly log: Log;
  /** Gives up a start that takes too long; the rejection is its reason. */
  readonly signal: AbortSignal;
}

export interface WorkersReadiness {
  /** Workers that can store events now. */
  readonly ready: number;
  readonly workers: number;
  /** What is wrong, worker by worker. */
  readonly reasons: readonly string[];
}

export interface Supervisor {
  /**
   * Starts them all; the public port. Rejects with the words of the first worker that cannot start.
   */
  start(): Promise<number>;
  readiness(): Promise<WorkersReadiness>;
  warnings(): Promise<string[]>;
  /**
   * All workers' metrics as one gateway's. A worker that does not answer in time counts with what
   * it last said.
   */
  metrics(supervisor: readonly MetricSnapshot[]): Promise<MetricSnapshot[]>;
  /** Of those metrics the counters and histograms. Begins no new window of any gauge. */
  counts(): Promise<MetricSnapshot[]>;
  /** Of all workers, the newest last. */
  clientWarnings(): Promise<ClientWarning[]>;
  /**
   * Drains all workers, after the delay, which is as set unless given, and ends those that take too
   * long.
   */
  close(drainDelayMs?: number): Promise<void>;
}

const restartDelayMsMin = 100;
const restartDelayMsMax = 5_000;
/** A worker that ran this long was healthy: the next death waits the shortest time again. */
const steadyMs = 30_000;
const metricsTimeoutMs = 1_000;
/** A worker's own check may take a second. */
const readinessTimeoutMs = 1_250;
/** What a worker has beyond the delay and the timeout of its drain, to close what it holds. */
const closeGraceMs = 4_000;

export function createSupervisor({ config, program, log, signal }: SupervisorOptions): Supervisor {
  const closing = new AbortController();
  const merged = createMergedMetrics();
  const running = new Map<number, WorkerProcess>();
  const kept: Promise<void>[] = [];
  const silence = createSilenceWatch({ running, log });
  let port = config.port;

  async function start(): Promise<number> {
    const giveUp = rejectionOf(signal);
    const indexes = Array.from({ length: config.workers }, (_, index) => index);
    // The first one finds out that the port is free, and its number, and makes the streams; the
    // rest have it easier.
    port = await Promise.race([startFirst(0, "first"), giveUp]);
    await Promise.race([
      Promise.all(indexes.slice(1).map((index) => startFirst(index, "joining"))),
      giveUp,
    ]);
    return port;
  }

  async function startFirst(index: number, role: WorkerRole): Promise<number> {
    const worker = launch(index, role);
    const found = await worker.listening;
    kept.push(keepRunning(index, worker));
    return found;
  }

  function launch(index: number, role: WorkerRole): WorkerProcess {
    const worker = startWorkerProcess({
      program,
      start: { type: "start", index, role, config: { ...config, port } },
      onMetrics: (metrics) => merged.heard(index, metrics),
    });
    running.set(index, worker);
    worker.listening.then(
      () => log.info({ worker: index, pid: worker.pid }, "worker takes connections"),
      () => {},
    );
    // It never rejects.
    void worker.ended.then(() => {
      running.delete(index);
      merged.ended(index);
    });
    return worker;
  }

  async function keepRunning(index: number, first: WorkerProcess): Promise<void> {
    let waitMs = restartDelayMsMin;
    for (let worker = first; ; worker = launch(index, "joining")) {
      const sinceMs = performance.now();
      const end = await worker.ended;
      if (closing.signal.aborted) return;
      if (performance.now() - sinceMs > steadyMs) waitMs = restartDelayMsMin;
      log.error(
        { worker: index, pid: worker.pid, ...end, waitMs },
        "worker ended: starting another in its place",
      );
      await delay(waitMs, undefined, { signal: closing.signal }).catch(() => {});
      if (closing.signal.aborted) return;
      waitMs = Math.min(waitMs * 2, restartDelayMsMax);
      merged.restarted();
    }
  }

  async function readiness(): Promise<WorkersReadiness> {
    const found = await Promise.all(
      Array.from({ length: config.workers }, (_, index) => reasonsOf(index)),
    );
    return {
      ready: found.filter((reasons) => reasons.length === 0).length,
      workers: config.workers,
      reasons: found.flatMap((reasons, index) =>
        reasons.map((reason) => `worker ${index}: ${reason}`),
      ),
    };
  }

  async function reasonsOf(index: number): Promise<readonly string[]> {
    const worker = running.get(index);
    if (worker === undefined) return ["not running"];
    return (await worker.ask("readiness", readinessTimeoutMs)) ?? ["no answer"];
  }

  /** All workers follow one registry, so most say the same. */
  async function warnings(): Promise<string[]> {
    const asked = [...running.values()].map((worker) => worker.ask("warnings", readinessTimeoutMs));
    return [...new Set((await Promise.all(asked)).flatMap((answer) => answer ?? []))];
  }

  async function metrics(supervisor: readonly MetricSnapshot[]): Promise<MetricSnapshot[]> {
    await hear("metrics");
    return merged.all(supervisor);
  }

  async function counts(): Promise<MetricSnapshot[]> {
    await hear("counts");
    return merged.all([]).filter(({ type }) => type !== "gauge");
  }

  async function clientWarnings(): Promise<ClientWarning[]> {
    const found = await Promise.all(
      [...running.values()].map((worker) => worker.ask("clientWarnings", metricsTimeoutMs)),
    );
    return found
      .flatMap((answer) => answer ?? [])
      .toSorted((left, right) => left.atMs - right.atMs);
  }

  async function hear(about: "counts" | "metrics"): Promise<void> {
    await Promise.all(
      [...running].map(async ([index, worker]) => {
        const answer = await worker.ask(about, metricsTimeoutMs);
        // One that has ended meanwhile has been settled with.
        if (answer !== undefined && running.get(index) === worker) merged.heard(index, answer);
      }),
    );
  }

  async function close(drainDelayMs = config.drainDelayMs): Promise<void> {
    closing.abort();
    // One that drains may take its time; what is past it is killed below.
    silence.stop();
    const workers = [...running.values()];
    for (const worker of workers) worker.stop(drainDelayMs);
    const deadline = setTimeout(
      () => {
        for (const [index, worker] of running) {
          log.error({ worker: index, pid: worker.pid }, "worker does not end: killed");
          worker.kill();
        }
      },
      drainDelayMs + config.drainTimeoutMs + closeGraceMs,
    );
    await Promise.all(workers.map((worker) => worker.ended));
    clearTimeout(deadline);
    await Promise.all(kept);
  }

  return { start, readiness, warnings, metrics, counts, clientWarnings, close };
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
