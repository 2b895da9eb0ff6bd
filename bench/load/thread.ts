// A load thread: runs its share of the schedule on its share of the connections. Sends samples and
// counts to the main thread.

import { hrtime } from "node:process";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { createBodies } from "./bodies.ts";
import { createConnection } from "./client.ts";
import { createGenerator } from "./generator.ts";
import { createLedger } from "./ledger.ts";
import type { FromThread, Snapshot, ThreadStart, ToThread } from "./messages.ts";
import { requestsToWarmUp, shareOf } from "./plan.ts";
import { createSchedule } from "./schedule.ts";

const reportEveryMs = 200;
const samplesMax = 8_192;
const microsecondsMax = 0xffff_ffff;

async function makeLoad({ plan, thread, events }: ThreadStart): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error("make load: not in a thread");
  const connections = Array.from({ length: shareOf(plan.connections, thread, plan.threads) }, () =>
    createConnection({ ...plan, url: new URL(plan.url) }),
  );
  await Promise.all(connections.map((connection) => connection.open()));
  const bodies = createBodies(plan);
  tell({ kind: "ready" });
  const startMs = await startOf(port);
  // The offset from `performance.now` to the common clock, so that the hot path needs no BigInt.
  const clockMs = Number(hrtime.bigint()) / 1e6 - performance.now();
  let microseconds = new Uint32Array(2 * samplesMax);
  let samples = 0;
  const atStart = performance.eventLoopUtilization();

  const generator = createGenerator({
    ...plan,
    schedule: createSchedule(plan, thread, startMs),
    connections,
    bodies,
    warmUpRequests: requestsToWarmUp(plan),
    backlogMax: shareOf(plan.backlogMax, thread, plan.threads),
    ledger: events === undefined ? undefined : createLedger(events),
    nowMs: () => performance.now() + clockMs,
    wallClockMs: performance.timeOrigin - clockMs,
    onAcknowledged(fromDueMs, fromSentMs) {
      microseconds[2 * samples] = toMicroseconds(fromDueMs);
      microseconds[2 * samples + 1] = toMicroseconds(fromSentMs);
      samples += 1;
      if (samples === samplesMax) handOver();
    },
  });

  function tell(message: FromThread): void {
    if (message.kind === "samples") port?.postMessage(message, [message.microseconds.buffer]);
    else port?.postMessage(message);
  }

  function handOver(): void {
    if (samples === 0) return;
    tell({ kind: "samples", microseconds: microseconds.slice(0, 2 * samples) });
    microseconds = new Uint32Array(2 * samplesMax);
    samples = 0;
  }

  function snapshot(): Snapshot {
    const busy = performance.eventLoopUtilization(atStart).utilization;
    return { counts: generator.counts, answers: generator.answers, busy };
  }

  const timer = setInterval(() => {
    handOver();
    tell({ kind: "snapshot", snapshot: snapshot() });
  }, reportEveryMs);
  port.on("message", (message: ToThread) => {
    if (message.kind === "stop") generator.stop();
  });
  if (startMs === Number.POSITIVE_INFINITY) generator.stop();
  await generator.run();
  clearInterval(timer);
  handOver();
  tell({ kind: "done", snapshot: snapshot() });
  port.close();
}

/** Resolves with Infinity, at which no request is due, if the run was stopped before the start. */
function startOf(port: MessagePort): Promise<number> {
  return new Promise((resolve) => {
    port.once("message", (message: ToThread) =>
      resolve(message.kind === "start" ? message.startMs : Number.POSITIVE_INFINITY),
    );
  });
}

function toMicroseconds(ms: number): number {
  return Math.min(Math.max(Math.round(ms * 1_000), 0), microsecondsMax);
}

await makeLoad(workerData as ThreadStart);
