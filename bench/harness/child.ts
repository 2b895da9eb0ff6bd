// Child processes of the bench, which end even if the bench ends early. If a child ends too early,
// the error contains its last output.

import { type ChildProcess, spawn } from "node:child_process";

interface ChildOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly ipc?: boolean;
}

export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  said(): string;
  /**
   * Resolves with the first result of `pick` that is not undefined; calls `pick` for each output
   * line.
   */
  line<T>(pick: (line: string) => T | undefined, timeoutMs: number): Promise<T>;
  message<T>(timeoutMs: number): Promise<T>;
  finished(timeoutMs: number): Promise<void>;
  end(signal?: NodeJS.Signals): Promise<void>;
}

const saidMax = 65_536;
const endGraceMs = 10_000;
const alive = new Set<ChildProcess>();

process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

export function startChild({ program, args, env = {}, ipc = false }: ChildOptions): Child {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PENSTOCK_"));
  const child = spawn(program, args, {
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ["ignore", "pipe", "pipe", ...(ipc ? ["ipc" as const] : [])],
  });
  alive.add(child);
  let said = "";
  const gone = new Promise<void>((resolve) => {
    child.once("close", () => {
      alive.delete(child);
      resolve();
    });
    child.once("error", (error) => {
      said += error.message;
      alive.delete(child);
      resolve();
    });
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-saidMax);
    });
  }

  function failure(what: string): Error {
    return new Error(
      `${what}: ${program} ${args.join(" ")}: exit ${child.exitCode ?? child.signalCode}\n${said}`,
    );
  }

  function first<T>(
    what: string,
    timeoutMs: number,
    listen: (resolve: (value: T) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(failure(`${what}: nothing within ${timeoutMs} ms`)),
        timeoutMs,
      );
      const settle = (action: () => void) => {
        clearTimeout(timer);
        action();
      };
      listen((value) => settle(() => resolve(value)));
      void gone.then(() => settle(() => reject(failure(`${what}: it ended first`))));
    });
  }

  return {
    process: child,
    pid: child.pid ?? 0,
    said: () => said,
    line: (pick, timeoutMs) =>
      first("wait for a line", timeoutMs, (resolve) => {
        let rest = "";
        const look = (text: string): void => {
          const lines = (rest + text).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) {
            const picked = pick(line);
            if (picked !== undefined) resolve(picked);
          }
        };
        child.stdout?.on("data", look);
        child.stderr?.on("data", look);
      }),
    message: <T>(timeoutMs: number) =>
      first<T>("wait for a message", timeoutMs, (resolve) =>
        child.once("message", (value) => resolve(value as T)),
      ),
    async finished(timeoutMs) {
      const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
      await gone;
      clearTimeout(timer);
      if (child.exitCode !== 0) throw failure("wait for the end");
    },
    async end(signal = "SIGTERM") {
      child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), endGraceMs);
      await gone;
      clearTimeout(timer);
    },
  };
}
