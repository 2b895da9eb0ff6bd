// One worker from the supervisor's side: a forked process, its messages, and its end. The
// supervisor starts replacements.

import { type ChildProcess, fork } from "node:child_process";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type {
  Listening,
  MessageFromWorker,
  MessageToWorker,
  StartMessage,
  WorkerAnswers,
} from "./messages.ts";

/** The hidden subcommand that starts a worker process. */
export const workerCommand = "worker";

export interface WorkerProcessOptions {
  /**
   * The program's file, the arguments that start it as a worker, and its environment. `env` is the
   * environment of this process by default.
   */
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
  /**
   * Reason why the worker could not start, in its own or the system's words; undefined if there is
   * no such message.
   */
  readonly reason: string | undefined;
}

export interface WorkerProcess {
  readonly pid: number | undefined;
  /**
   * Number of messages read from this worker. The number keeps increasing while the worker is
   * alive.
   */
  readonly messagesRead: number;
  /** Report of the worker once it accepts connections. Rejects if the worker ends before that. */
  readonly listening: Promise<Listening>;
  /** End of the process, after its last message has been read. Never rejects. */
  readonly ended: Promise<WorkerEnd>;
  /**
   * Sends a request to the worker and returns the answer; undefined if the worker has not answered
   * in time.
   */
  ask<About extends keyof WorkerAnswers>(
    about: About,
    timeoutMs: number,
  ): Promise<WorkerAnswers[About] | undefined>;
  /** Asks the worker to drain, after the delay, and to end. */
  stop(drainDelayMs: number): void;
  kill(): void;
}

export function startWorkerProcess({
  program,
  start,
  onMetrics,
}: WorkerProcessOptions): WorkerProcess {
  // Standard output is for results. A worker has no results, so its standard output is ignored. The
  // messages use structured clone, which preserves NaN; JSON would not.
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
    // `ended` never rejects.
    void ended.then((end) => {
      reject(new Error(end.reason ?? `start worker ${start.index}: it ended, ${wordsFor(end)}`));
      for (const settle of pending.values()) settle(undefined);
    });
  });
  // An unhandled rejection would end this process. Callers that await `listening` still get the
  // rejection.
  listening.catch(() => {});
  post(start);

  function post(message: MessageToWorker): void {
    // A message to an ending worker may be lost. The exit handler notices the end.
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
 * Waits for the process to exit and then for its channel to close, because the channel may hold
 * messages for a moment after the exit.
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
