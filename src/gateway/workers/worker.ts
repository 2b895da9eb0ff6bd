// Runs a worker process. It starts a gateway, answers the supervisor and reports counts. The worker
// drains if the supervisor requests it, if it receives a signal, or if the supervisor has ended.

import type { ClientWarning } from "../../platform/base/client-warning.ts";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type {
  Listening,
  MessageFromWorker,
  MessageToWorker,
  StartMessage,
  WorkerAnswers,
} from "./worker-process.ts";

export interface SupervisorChannel {
  readonly connected: boolean;
  send?(
    message: MessageFromWorker,
    handle: undefined,
    options: undefined,
    sent: () => void,
  ): unknown;
  on(event: "message", listener: (message: unknown) => void): unknown;
  on(event: "disconnect", listener: () => void): unknown;
}

interface WorkerGateway extends Listening {
  readonly metrics: { counts(): MetricSnapshot[]; snapshot(): Promise<MetricSnapshot[]> };
  readonly clientWarnings: { latest(): readonly ClientWarning[] };
  readiness(): Promise<readonly string[]>;
  warnings(): readonly string[];
  close(drainDelayMs?: number): Promise<void>;
}

interface WorkerOptions {
  readonly channel: SupervisorChannel;
  readonly stop: AbortSignal;
  readonly startGateway: (start: StartMessage, signal: AbortSignal) => Promise<WorkerGateway>;
}

/** If a worker is killed, its counts since the last report are lost. */
const reportEveryMs = 1_000;

/**
 * Returns false if the worker could not start. In that case, it has already reported the reason.
 */
export async function runWorker({ channel, stop, startGateway }: WorkerOptions): Promise<boolean> {
  const stopRequested = new AbortController();
  const ending = AbortSignal.any([stop, stopRequested.signal]);
  const abandoned = new AbortController();
  const started = Promise.withResolvers<StartMessage>();
  let gateway: WorkerGateway | undefined;
  let drainDelayMs: number | undefined;

  const answers: { [About in keyof WorkerAnswers]: () => Promise<WorkerAnswers[About]> } = {
    counts: async () => gateway?.metrics.counts() ?? [],
    metrics: async () => (await gateway?.metrics.snapshot()) ?? [],
    readiness: reasons,
    warnings: async () => gateway?.warnings() ?? [],
    clientWarnings: async () => gateway?.clientWarnings.latest() ?? [],
  };

  channel.on("message", (message) => {
    const received = message as MessageToWorker;
    if (received.type === "start") started.resolve(received);
    else if (received.type === "stop") {
      drainDelayMs = received.drainDelayMs;
      stopRequested.abort();
    } else void answer(received.id, received.about);
  });
  channel.on("disconnect", () => {
    // The supervisor was interrupted again during its drain, so the worker does not wait either.
    if (ending.aborted) abandoned.abort();
    else stopRequested.abort();
  });

  async function answer(id: number, about: keyof WorkerAnswers): Promise<void> {
    await send(channel, { type: "answer", id, answer: await answers[about]() });
  }

  async function reasons(): Promise<readonly string[]> {
    try {
      return gateway === undefined ? ["starting"] : await gateway.readiness();
    } catch (error) {
      return [`the check failed: ${(error as Error).message}`];
    }
  }

  await Promise.race([started.promise, aborted(ending)]);
  if (ending.aborted) return true;
  try {
    gateway = await startGateway(await started.promise, ending);
  } catch (error) {
    if (ending.aborted) return true;
    await send(channel, { type: "failed", reason: (error as Error).message });
    return false;
  }
  const { metrics, port, streamCreated } = gateway;
  await send(channel, { type: "listening", port, streamCreated });
  const reports = setInterval(
    () => void send(channel, { type: "counts", metrics: metrics.counts() }),
    reportEveryMs,
  );
  await aborted(ending);
  await Promise.race([gateway.close(drainDelayMs), aborted(abandoned.signal)]);
  clearInterval(reports);
  await send(channel, { type: "counts", metrics: metrics.counts() });
  return true;
}

function send(channel: SupervisorChannel, message: MessageFromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (channel.connected) channel.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
