// Counts what became of the lines of a file, and says it.

import type { LineNote } from "./batch.ts";

/** As the state file has it. */
export interface CountsText {
  readonly stored: number;
  /** By reason. */
  readonly notStored: Readonly<Record<string, number>>;
  readonly warnings: Readonly<Record<string, number>>;
}

export class Counts {
  stored = 0;
  readonly #notStored: Map<string, number>;
  readonly #warnings: Map<string, number>;

  constructor(before?: CountsText) {
    this.stored = before?.stored ?? 0;
    this.#notStored = new Map(Object.entries(before?.notStored ?? {}));
    this.#warnings = new Map(Object.entries(before?.warnings ?? {}));
  }

  get notStored(): number {
    return [...this.#notStored.values()].reduce((sum, count) => sum + count, 0);
  }

  note({ code, isStored }: Pick<LineNote, "code" | "isStored">, count = 1): void {
    const counts = isStored ? this.#warnings : this.#notStored;
    counts.set(code, (counts.get(code) ?? 0) + count);
  }

  text(): CountsText {
    return {
      stored: this.stored,
      notStored: Object.fromEntries(this.#notStored),
      warnings: Object.fromEntries(this.#warnings),
    };
  }

  /** Sentences for people; `verb` is "stored", or what a dry run would do. */
  summary(verb: string): string[] {
    const events = this.stored === 1 ? "event" : "events";
    const lines = [`${grouped(this.stored)} ${events} ${verb}, ${grouped(this.notStored)} not`];
    const negated = verb.replace(/^(would )?/, "$1not ");
    for (const [code, count] of descending(this.#notStored))
      lines.push(`  ${negated}: ${grouped(count)} ${code}`);
    for (const [code, count] of descending(this.#warnings))
      lines.push(`  ${verb} with a warning: ${grouped(count)} ${code}`);
    return lines;
  }
}

function descending(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].sort(([, one], [, other]) => other - one);
}

/** 1,234,567 */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
