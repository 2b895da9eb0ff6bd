import { cutOffCode, type LineNote } from "./batch.ts";

export interface CountsText {
  readonly stored: number;
  readonly notStored: Readonly<Record<string, number>>;
  readonly warnings: Readonly<Record<string, number>>;
  /** Number of lines with at least one warning. Older state files do not contain it. */
  readonly warned?: number;
  readonly links?: number;
}

/** These events are skipped, as in PostHog's own import and capture. */
const skippedOnPurpose: ReadonlySet<string> = new Set(["session_start", "performance_event"]);

const costsNothing: ReadonlySet<string> = new Set([
  "invalid_uuid",
  "reused_uuid",
  "zero_timestamp",
  "timestamp_in_future",
  "invalid_sent_at",
  "id_shortened",
  "invalid_person_profile",
  "non_finite_number",
]);

export function isLoss({ code, isStored }: Pick<LineNote, "code" | "isStored">): boolean {
  if (!isStored) return !skippedOnPurpose.has(code);
  return !code.startsWith("missing_") && !costsNothing.has(code);
}

export class Counts {
  stored = 0;
  warned = 0;
  links = 0;
  readonly #notStored: Map<string, number>;
  readonly #warnings: Map<string, number>;

  constructor(before?: CountsText) {
    this.stored = before?.stored ?? 0;
    this.warned = before?.warned ?? 0;
    this.links = before?.links ?? 0;
    this.#notStored = new Map(Object.entries(before?.notStored ?? {}));
    this.#warnings = new Map(Object.entries(before?.warnings ?? {}));
  }

  get notStored(): number {
    return [...this.#notStored.values()].reduce((sum, count) => sum + count, 0);
  }

  get linesLost(): number {
    return lossesIn(this.#notStored, false);
  }

  get partsLost(): number {
    return lossesIn(this.#warnings, true);
  }

  note({ code, isStored }: Pick<LineNote, "code" | "isStored">, count = 1): void {
    const counts = isStored ? this.#warnings : this.#notStored;
    counts.set(code, (counts.get(code) ?? 0) + count);
  }

  text(): CountsText {
    const notStored = [...this.#notStored].filter(([code]) => code !== cutOffCode);
    return {
      stored: this.stored,
      notStored: Object.fromEntries(notStored),
      warnings: Object.fromEntries(this.#warnings),
      warned: this.warned,
      links: this.links,
    };
  }

  summary(verb: string): string[] {
    const events = `${grouped(this.stored)} ${this.stored === 1 ? "event" : "events"}`;
    return [
      `${events} ${verb}${this.#warnedText()}, ${grouped(this.notStored)} not`,
      ...this.#reasons(verb),
    ];
  }

  earlierSummary(): string[] {
    const were = `${grouped(this.stored)} ${this.stored === 1 ? "was" : "were"} stored`;
    const fate = `${were} by an earlier run${this.#warnedText()}, ${grouped(this.notStored)} not`;
    return [`0 events sent now; ${fate}`, ...this.#reasons("stored")];
  }

  #warnedText(): string {
    const parts = [
      ...(this.warned === 0 ? [] : [`${grouped(this.warned)} with a warning`]),
      ...(this.links === 0 ? [] : [`${grouped(this.links)} linking a device to its user`]),
    ];
    return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
  }

  #reasons(verb: string): string[] {
    const lines: string[] = [];
    const negated = verb.replace(/^(would )?/, "$1not ");
    for (const [code, count] of descending(this.#notStored))
      lines.push(`  ${negated}: ${grouped(count)} ${code}`);
    for (const [code, count] of descending(this.#warnings))
      lines.push(`  ${verb} with a warning: ${grouped(count)} ${code}`);
    return lines;
  }
}

function lossesIn(counts: ReadonlyMap<string, number>, isStored: boolean): number {
  return [...counts].reduce(
    (sum, [code, count]) => sum + (isLoss({ code, isStored }) ? count : 0),
    0,
  );
}

function descending(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].sort(([, one], [, other]) => other - one);
}

/** Formats a number with separators, such as 1,234,567. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
