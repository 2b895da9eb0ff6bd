// Starts the load threads and combines their reports: counts, and latencies in two histograms.

import { hrtime } from "node:process";
import { Worker } from "node:worker_threads";
import { build, type Histogram } from "hdr-histogram-js";
import { type Counts, noCounts } from "./generator.ts";
import type { FromThread, Snapshot, ThreadStart, ToThread } from "./messages.ts";
import type { Plan } from "./plan.ts";

export interface Load {
  readonly counts: Counts;
  readonly answers: ReadonlyMap<string, number>;
  readonly fromDue: Histogram;
  readonly fromSent: Histogram;
  readonly elapsedMs: number;
  /** The fraction of the time in which the busiest thread was busy, 0 to 1. */
  readonly busyMax: number;
}

interface RunningLoad {
  current(): Load;
  stop(): void;
  /** Resolves when all threads have ended. Rejects if a thread fails. */
  readonly done: Promise<Load>;
}

const startDelayMs = 50;
const microsecondsMax = 0xffff_ffff;

export function startLoad(plan: Plan, events: SharedArrayBuffer | undefined): RunningLoad {
  let startMs = Number.POSITIVE_INFINITY;
  const snapshots: Snapshot[] = [];
  const fromDue = newHistogram();
  const fromSent = newHistogram();
  let ready = 0;
  let stopped = false;
  let endedMs: number | undefined;

  function follow(worker: Worker, thread: number): Promise<void> {
    return new Promise((resolve, reject) => {
      worker.on("message", (message: FromThread) => {
        if (message.kind === "samples") record(message.microseconds);
        else if (message.kind === "ready") startWhenReady();
        else snapshots[thread] = message.snapshot;
        if (message.kind === "done") resolve();
      });
      worker.on("error", reject);
      worker.on("exit", (code) =>
        reject(new Error(`make load: a thread ended early with ${code}`)),
      );
    });
  }

  function startWhenReady(): void {
    ready += 1;
    if (ready < plan.threads || stopped) return;
    startMs = clockMs() + startDelayMs;
    tellAll({ kind: "start", startMs });
  }

  function record(microseconds: Uint32Array): void {
    for (let at = 0; at < microseconds.length; at += 2) {
      fromDue.recordValue(microseconds[at]!);
      fromSent.recordValue(microseconds[at + 1]!);
    }
  }

  function current(): Load {
    const elapsedMs = Math.max((endedMs ?? clockMs()) - startMs, 0);
    return {
      counts: sumOf(snapshots),
      answers: answersOf(snapshots),
      fromDue,
      fromSent,
      elapsedMs,
      busyMax: busyMaxOf(snapshots),
    };
  }

  const workers = Array.from({ length: plan.threads }, (_, thread) => {
    const workerData: ThreadStart = { plan, thread, events };
    return new Worker(new URL("./thread.ts", import.meta.url), { workerData });
  });

  async function allDone(): Promise<Load> {
    try {
      await Promise.all(workers.map(follow));
      endedMs = clockMs();
      return current();
    } finally {
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
  }

  function tellAll(message: ToThread): void {
    for (const worker of workers) worker.postMessage(message);
  }

  function stop(): void {
    stopped = true;
    tellAll({ kind: "stop" });
  }

  return { current, stop, done: allDone() };
}

function clockMs(): number {
  return Number(hrtime.bigint()) / 1e6;
}

function newHistogram(): Histogram {
  return build({
    bitBucketSize: 32,
    lowestDiscernibleValue: 1,
    highestTrackableValue: microsecondsMax,
    numberOfSignificantValueDigits: 3,
  });
}

function sumOf(snapshots: readonly Snapshot[]): Counts {
  const sum = noCounts();
  for (const snapshot of snapshots) {
    if (snapshot === undefined) continue;
    for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += snapshot.counts[name];
  }
  return sum;
}

function busyMaxOf(snapshots: readonly Snapshot[]): number {
  return snapshots.reduce((max, { busy }) => Math.max(max, busy), 0);
}

function answersOf(snapshots: readonly Snapshot[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const snapshot of snapshots) {
    for (const [label, count] of snapshot?.answers ?? [])
      sum.set(label, (sum.get(label) ?? 0) + count);
  }
  return new Map([...sum].sort(([left], [right]) => left.localeCompare(right)));
}
