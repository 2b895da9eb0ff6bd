// One worker as its supervisor sees it: a forked process, what it says, and how it ended. Starting
// another in its place is the supervisor's job.

import { type ChildProcess, fork } from "node:child_process";
import type { MetricSnapshot } from "../base/sample.ts";
import type {
  MessageFromWorker,
  MessageToWorker,
  StartMessage,
  WorkerAnswers,
} from "./messages.ts";

/** The hidden subcommand that a worker process is started with. */
export const workerCommand = "worker";

export interface WorkerProcessOptions {
  /** The program, what makes it a worker, and its environment; without one, ours. */
  readonly program: {
    readonly file: string;
    readonly args: readonly string[];
    readonly env?: Readonly<Record<string, string | undefined>>;
  };
  readonly start: StartMessage;
  readonly onMetrics: (metrics: readonly MetricSnapshot[]) => void;
}

export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Its own words, when it could not start. */
  readonly reason: string | undefined;
}

export interface WorkerProcess {
  readonly pid: number | undefined;
  /** How many messages of it have been read: one that lives goes on counting. */
  readonly said: number;
  /** The public port, once it takes connections. Rejects when it ends before that. */
  readonly listening: Promise<number>;
  /** Fulfilled when the process is gone and its last message has been read. Never rejects. */
  readonly ended: Promise<WorkerEnd>;
  /** Undefined when it has not answered in time. */
  ask<About extends keyof WorkerAnswers>(
    about: About,
    timeoutMs: number,
  ): Promise<WorkerAnswers[About] | undefined>;
  /** Asks it to drain, after the delay, and end. */
  stop(drainDelayMs: number): void;
  kill(): void;
}

export function startWorkerProcess({
  program,
  start,
  onMetrics,
}: WorkerProcessOptions): WorkerProcess {
  // Its standard output is ours for results; a worker has none. Structured clone keeps NaN, which
  // JSON would not.
  const child = fork(program.file, [...program.args], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    serialization: "advanced",
    ...(program.env === undefined ? {} : { env: program.env }),
  });
  const pending = new Map<number, (answer: unknown) => void>();
  let asked = 0;
  let said = 0;
  let reason: string | undefined;
  const ended = endOf(child).then((end) => ({ ...end, reason: reason ?? end.reason }));
  const listening = new Promise<number>((resolve, reject) => {
    child.on("message", (message: MessageFromWorker) => {
      said += 1;
      if (message.type === "listening") resolve(message.port);
      else if (message.type === "failed") reason = message.reason;
      else if (message.type === "counts") onMetrics(message.metrics);
      else pending.get(message.id)?.(message.answer);
    });
    // It never rejects.
    void ended.then((end) => {
      reject(new Error(end.reason ?? `start worker ${start.index}: it ended, ${wordsFor(end)}`));
      for (const settle of pending.values()) settle(undefined);
    });
  });
  // Whoever awaits it hears of it; nobody has to.
  listening.catch(() => {});
  tell(start);

  function tell(message: MessageToWorker): void {
    // A worker on its way out cannot be told anything; that it ends is heard elsewhere.
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
      tell({ type: "ask", id, about });
    });
    clearTimeout(timer);
    pending.delete(id);
    return answer as WorkerAnswers[About] | undefined;
  }

  return {
    pid: child.pid,
    get said() {
      return said;
    },
    listening,
    ended,
    ask,
    stop: (drainDelayMs) => tell({ type: "stop", drainDelayMs }),
    kill: () => void child.kill("SIGKILL"),
  };
}

function wordsFor({ code, signal }: Pick<WorkerEnd, "code" | "signal">): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
}

/** The channel may hold messages for a moment after the process is gone. */
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
