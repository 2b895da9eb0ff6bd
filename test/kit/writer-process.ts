import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { StorePlace } from "../../src/readers/effects/store/open.ts";
import { urlOf } from "./effects-databases.ts";

export interface WriterProcess {
  readonly child: ChildProcessByStdio<null, Readable, null>;
  /** Resolves at the next line that matches. Rejects if the process ends before. */
  said(wanted: RegExp): Promise<void>;
  /**
   * Kills the process after `lines` more lines and this delay, or after a time without output.
   * Returns the number of lines.
   */
  killedAfter(lines: number, afterMs?: number): Promise<number>;
}

interface WriterProcessOptions {
  readonly natsUrl: string;
  readonly place: StorePlace;
  readonly batchEvents: number;
  readonly changedBytes?: number | undefined;
}

/** If there is no output for this time in ms, everything is applied. */
const idleMs = 10_000;

interface SinkProcessOptions {
  readonly natsUrl: string;
  readonly url: string;
  readonly batchEvents: number;
}

export function startWriterProcess({
  natsUrl,
  place,
  batchEvents,
  changedBytes,
}: WriterProcessOptions): WriterProcess {
  return start("effects-process.ts", [
    natsUrl,
    urlOf(place),
    String(batchEvents),
    String(changedBytes ?? ""),
  ]);
}

export function startSinkProcess({ natsUrl, url, batchEvents }: SinkProcessOptions): WriterProcess {
  return start("sink-process.ts", [natsUrl, url, String(batchEvents)]);
}

function start(program: string, args: readonly string[]): WriterProcess {
  const file = path.resolve(import.meta.dirname, program);
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", file, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  let isClosed = false;
  lines.once("close", () => {
    isClosed = true;
  });
  return {
    child,
    said: (wanted) =>
      new Promise((resolve, reject) => {
        lines.on("line", (line: string) => {
          if (wanted.test(line)) resolve();
        });
        const late = (): void => reject(new Error(`the writer has not said ${wanted}`));
        if (isClosed) late();
        lines.once("close", late);
      }),
    async killedAfter(count, afterMs = 0) {
      let said = 0;
      const exited = once(child, "exit");
      const enough = new Promise<void>((resolve) => {
        let idle = setTimeout(resolve, 3 * idleMs);
        lines.on("line", () => {
          clearTimeout(idle);
          idle = setTimeout(resolve, idleMs);
          if (++said === count) resolve();
        });
        lines.once("close", resolve);
      });
      await enough;
      if (afterMs > 0) await delay(afterMs);
      child.kill("SIGKILL");
      await exited;
      return said;
    },
  };
}
