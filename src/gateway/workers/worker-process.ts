// Represents a worker in the supervisor: its process, its messages, and its end. Settings are sent
// only in messages, because other users can see the command line of a process.

import { type ChildProcess, fork } from "node:child_process";
import type { ClientWarning } from "../../platform/base/client-warning.ts";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type { Config } from "../../platform/settings/config.ts";

export type WorkerRole =
  /** The `first` worker checks that no other process uses the port. */
  "first" | "joining";

export interface StartMessage {
  readonly type: "start";
  readonly index: number;
  readonly role: WorkerRole;
  readonly config: Config;
}

export interface Listening {
  readonly port: number;
  readonly streamCreated: string | null;
}

export type MessageToWorker =
  | StartMessage
  | { readonly type: "ask"; readonly id: number; readonly about: keyof WorkerAnswers }
  | { readonly type: "stop"; readonly drainDelayMs: number };

export type MessageFromWorker =
  | ({ readonly type: "listening" } & Listening)
  /** The worker could not start, and would fail again. It ends after this message. */
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "counts"; readonly metrics: readonly MetricSnapshot[] }
  | { readonly type: "answer"; readonly id: number; readonly answer: unknown };

export interface WorkerAnswers {
  readonly counts: readonly MetricSnapshot[];
  readonly metrics: readonly MetricSnapshot[];
  readonly readiness: readonly string[];
  readonly warnings: readonly string[];
  readonly clientWarnings: readonly ClientWarning[];
}

export const workerCommand = "worker";

export interface WorkerProcessOptions {
  readonly program: {
    readonly file: string;
    readonly args: readonly string[];
    readonly env?: Readonly<Record<string, string | undefined>>;
  };
  readonly start: StartMessage;
  readonly onMetrics: (metrics: readonly MetricSnapshot[]) => void;
}

interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly reason: string | undefined;
}

export interface WorkerProcess {
  readonly pid: number | undefined;
  readonly messagesRead: number;
  /** Rejects if the worker ends before it accepts connections. */
  readonly listening: Promise<Listening>;
  /** Resolves when the worker has ended and its last message has been read. Never rejects. */
  readonly ended: Promise<WorkerEnd>;
  ask<About extends keyof WorkerAnswers>(
    about: About,
    timeoutMs: number,
  ): Promise<WorkerAnswers[About] | undefined>;
  stop(drainDelayMs: number): void;
  kill(): void;
}

export function startWorkerProcess({
  program,
  start,
  onMetrics,
}: WorkerProcessOptions): WorkerProcess {
  // A worker writes nothing to standard output. JSON cannot represent NaN, structured clone can.
  const child = fork(program.file, [...program.args], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    serialization: "advanced",
    ...(program.env === undefined ? {} : { env: program.env }),
  });
  const pending = new Map<number, (answer: unknown) => void>();
  let asked = 0;
  let messagesRead = 0;
  let reason: string | undefined;
  const ended = endOf(child).then((end) => ({ ...end, reason: reason ?? end.reason }));
  const listening = new Promise<Listening>((resolve, reject) => {
    child.on("message", (message: MessageFromWorker) => {
      messagesRead += 1;
      if (message.type === "listening") resolve(message);
      else if (message.type === "failed") reason = message.reason;
      else if (message.type === "counts") onMetrics(message.metrics);
      else pending.get(message.id)?.(message.answer);
    });
    void ended.then((end) => {
      reject(
        new Error(
          end.reason ??
            `cannot start worker ${start.index}: the process ended with ${wordsFor(end)}`,
        ),
      );
      for (const settle of pending.values()) settle(undefined);
    });
  });
  // Without this handler, an unhandled rejection would end the process.
  listening.catch(() => {});
  post(start);

  function post(message: MessageToWorker): void {
    // If the worker is ending, the message may be lost. The supervisor detects the end separately.
    if (child.connected) child.send(message, () => {});
  }

  async function ask<About extends keyof WorkerAnswers>(
    about: About,
    timeoutMs: number,
  ): Promise<WorkerAnswers[About] | undefined> {
    if (!child.connected) return undefined;
    const id = asked++;
    let timer: NodeJS.Timeout | undefined;
    const answer = await new Promise<unknown>((resolve) => {
      timer = setTimeout(resolve, timeoutMs, undefined);
      pending.set(id, resolve);
      post({ type: "ask", id, about });
    });
    clearTimeout(timer);
    pending.delete(id);
    return answer as WorkerAnswers[About] | undefined;
  }

  return {
    pid: child.pid,
    get messagesRead() {
      return messagesRead;
    },
    listening,
    ended,
    ask,
    stop: (drainDelayMs) => post({ type: "stop", drainDelayMs }),
    kill: () => void child.kill("SIGKILL"),
  };
}

function wordsFor({ code, signal }: Pick<WorkerEnd, "code" | "signal">): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
}

/**
 * Waits until the channel is closed, because the last messages may arrive after the process has
 * exited.
 */
function endOf(child: ChildProcess): Promise<WorkerEnd> {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      if (child.pid === undefined) resolve({ code: null, signal: null, reason: error.message });
    });
    child.once("exit", (code, signal) => {
      const end = { code, signal, reason: undefined };
      if (child.connected) child.once("disconnect", () => resolve(end));
      else resolve(end);
    });
  });
}
