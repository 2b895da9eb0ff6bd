import type { Writable } from "node:stream";
import { forTerminal } from "../terminal.ts";
import { grouped } from "./counts.ts";

interface ProgressOptions {
  readonly stderr: Writable;
  readonly monotonicMs: () => number;
}

interface Position {
  readonly name: string;
  readonly events: number;
  readonly bytesRead: number;
  readonly bytesTotal: number | undefined;
}

const clearLine = "\r\u001b[2K";
const terminalEveryMs = 250;
const linesEveryMs = 5_000;

export class Progress {
  readonly #options: ProgressOptions;
  readonly #isTerminal: boolean;
  #begin: Position | undefined = undefined;
  #begunMs = 0;
  #toldMs: number;
  #hasLine = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#isTerminal = "isTTY" in options.stderr && options.stderr.isTTY === true;
    this.#toldMs = options.monotonicMs();
  }

  begin(position: Position): void {
    this.#begin = position;
    this.#begunMs = this.#options.monotonicMs();
  }

  update(position: Position): void {
    const nowMs = this.#options.monotonicMs();
    const everyMs = this.#isTerminal ? terminalEveryMs : linesEveryMs;
    if (nowMs - this.#toldMs < everyMs) return;
    this.#toldMs = nowMs;
    const text = `import: ${this.#textOf(position, nowMs)}`;
    this.#options.stderr.write(
      this.#isTerminal ? `${clearLine}${forTerminal(text)}` : `${forTerminal(text)}\n`,
    );
    this.#hasLine = this.#isTerminal;
  }

  say(line: string): void {
    const clear = this.#hasLine ? clearLine : "";
    this.#hasLine = false;
    this.#options.stderr.write(`${clear}import: ${forTerminal(line)}\n`);
  }

  end(): void {
    if (this.#hasLine) this.#options.stderr.write(clearLine);
    this.#hasLine = false;
  }

  #textOf({ name, events, bytesRead, bytesTotal }: Position, nowMs: number): string {
    const begin = this.#begin ?? { events: 0, bytesRead: 0 };
    const seconds = Math.max(0.001, (nowMs - this.#begunMs) / 1_000);
    const rate = (events - begin.events) / seconds;
    const parts = [`${name}: ${grouped(events)} events`, `${grouped(Math.round(rate))}/s`];
    if (bytesTotal !== undefined && bytesTotal > 0) {
      parts.push(`${Math.min(100, Math.floor((100 * bytesRead) / bytesTotal))} %`);
      const bytesRate = (bytesRead - begin.bytesRead) / seconds;
      if (bytesRate > 0)
        parts.push(`${durationText(Math.max(0, bytesTotal - bytesRead) / bytesRate)} left`);
    }
    return parts.join(", ");
  }
}

export function durationText(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3_600)}h ${Math.floor((whole % 3_600) / 60)}m`;
}
