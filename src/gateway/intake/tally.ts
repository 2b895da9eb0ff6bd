// Counts the outcomes of a request's items. The answer is built from the counts. They are added to
// the metrics once per request.

import type {
  ClientWarningOrigin,
  ClientWarningTaker,
} from "../../platform/base/client-warning.ts";
import type { ErrorCode, ItemErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import {
  type DropCode,
  type WarningCode,
  warningCodes,
  warningTable,
} from "../../platform/base/warnings.ts";
import type { Verdict } from "../../records/verdict.ts";
import type { Exchange, IntakeReport, ItemNote } from "../http/port.ts";
import { type Explanation, mayHaveHint, textOf } from "./hints.ts";

/**
 * Maximum number of errors that an answer names, and of warnings. Further ones are only counted.
 */
export const itemNotesMax = 20;

/**
 * The counters of the intake. They are called at most once per request: `events` once per reason,
 * `warnings` once per code.
 */
export interface IntakeMetrics {
  /**
   * Counts events by outcome.
   * - `none`: stored.
   * - `duplicate`: already stored by an earlier attempt of the request.
   * - `timeout`: stored or not.
   * - `rate_limited`: events of a request that was refused as a whole.
   */
  events(
    lane: Lane,
    reason:
      | "none"
      | "duplicate"
      | "timeout"
      | "rate_limited"
      | "performance_event"
      | DropCode
      | ItemErrorCode,
    count: number,
  ): void;
  warnings(code: WarningCode, count: number): void;
  slowPathItems(count: number): void;
  distinctIdsCut(count: number): void;
}

// Most requests have no errors or warnings: they share this list, which is never written to.
const noNotes: ItemNote[] = [];
const noCounts: ReadonlyMap<number, number> = new Map();

export class Tally implements IntakeReport {
  accepted = 0;
  dropped = 0;
  errors = noNotes;
  errorsTotal = 0;
  warningsTotal = 0;
  /** Warnings of stored events that the answer names. `#drops` has the dropped items. */
  #storedWarnings = noNotes;
  #drops = noNotes;
  slowPathItems = 0;
  #distinctIdsCut = 0;
  #removed = 0;
  #noEvent = 0;
  #noDistinctId = 0;
  #notAnObject = 0;
  #errorCounts: Map<ItemErrorCode, number> | undefined = undefined;
  #warningCounts: Map<number, number> | undefined = undefined;

  /**
   * Whether the answer reports the outcome of each event, so that a partly stored request need not
   * be refused as a whole.
   */
  get answersInPart(): boolean {
    return false;
  }

  /**
   * Answers a request whose storable events are all stored. If `answersInPart`, also answers a
   * partly stored one. `notSent`: why the rest was not sent to the store.
   */
  answer(exchange: Exchange, _notSent: ErrorCode | undefined): void {
    exchange.answerStored(this);
  }

  /** Whether the answer would name one more dropped item. */
  get namesDrops(): boolean {
    return this.#drops.length < itemNotesMax;
  }

  /** Whether the answer would name one more event with an error. */
  get namesErrors(): boolean {
    return this.errors.length < itemNotesMax;
  }

  /** Whether the answer would name one more warning of a stored event. */
  get namesWarnings(): boolean {
    return this.#storedWarnings.length < itemNotesMax;
  }

  /** Counts a dropped item. `explanation` is not read if the answer does not name the item. */
  drop(index: number, code: DropCode, explanation: Explanation): void {
    this.dropped++;
    this.warningsTotal++;
    if (code === "no_event") this.#noEvent++;
    else if (code === "no_distinct_id") this.#noDistinctId++;
    else this.#notAnObject++;
    if (!this.namesDrops) return;
    if (this.#drops === noNotes) this.#drops = [];
    this.#drops.push({ index, code, detail: textOf(explanation) });
  }

  /** Counts an item that is removed on purpose. No count of the answer includes it. */
  remove(_index: number): void {
    this.#removed++;
  }

  fail(index: number, code: ItemErrorCode, explanation: Explanation): void {
    this.dropped++;
    this.errorsTotal++;
    this.#errorCounts ??= new Map();
    this.#errorCounts.set(code, (this.#errorCounts.get(code) ?? 0) + 1);
    if (!this.namesErrors) return;
    if (this.errors === noNotes) this.errors = [];
    this.errors.push({ index, code, detail: textOf(explanation) });
  }

  /** Counts a stored event. `hint`: the misspelt name that caused a warning; "" for none. */
  store(index: number, verdict: Verdict, hint: string): void {
    this.accepted++;
    if (verdict.distinctIdText !== undefined && verdict.distinctIdCut) this.#distinctIdsCut++;
    if (verdict.warnings !== 0) this.#warn(index, verdict.warnings, hint);
  }

  #warn(index: number, bits: number, hint: string): void {
    this.#warningCounts ??= new Map();
    for (const [bit, code] of warningCodes.entries()) {
      if ((bits & (1 << bit)) === 0) continue;
      this.warningsTotal++;
      this.#warningCounts.set(bit, (this.#warningCounts.get(bit) ?? 0) + 1);
      if (this.#storedWarnings.length >= itemNotesMax) continue;
      if (this.#storedWarnings === noNotes) this.#storedWarnings = [];
      const { detail } = warningTable[code];
      const text = textOf({ detail, hint: mayHaveHint(1 << bit) ? hint : "" });
      this.#storedWarnings.push({ index, code, detail: text });
    }
  }

  /**
   * The warnings that the answer names, sorted by index. If there are too many, dropped items have
   * priority over stored events.
   */
  get warnings(): ItemNote[] {
    if (this.#drops.length === 0) return this.#storedWarnings;
    const named = [...this.#drops, ...this.#storedWarnings].slice(0, itemNotesMax);
    return named.sort((one, other) => one.index - other.index);
  }

  /** Reports the events that are not stored, with one client warning per reason. */
  warnNotStored(origin: ClientWarningOrigin, clientWarnings: ClientWarningTaker): void {
    for (const [code, events] of this.#dropCounts()) {
      clientWarnings.notStored(origin, { code, detail: detailOf(code, this.#drops), events });
    }
    for (const [code, events] of this.#errorCounts ?? []) {
      clientWarnings.notStored(origin, { code, detail: detailOf(code, this.errors), events });
    }
  }

  #dropCounts(): (readonly [DropCode, number])[] {
    if (this.#drops.length === 0) return [];
    const counts = [
      ["no_event", this.#noEvent],
      ["no_distinct_id", this.#noDistinctId],
      ["not_an_object", this.#notAnObject],
    ] as const;
    return counts.filter(([, count]) => count > 0);
  }

  /** Adds the completed work to the metrics, regardless of the answer. */
  countWork(metrics: IntakeMetrics): void {
    if (this.slowPathItems > 0) metrics.slowPathItems(this.slowPathItems);
  }

  /**
   * Adds the results of the rules to the metrics. Must be called only if the client receives them:
   * a request that is answered 503 is retried, and would be counted each time. `isWhole`: whether
   * all storable events are stored. Stored events are counted elsewhere, when they are stored.
   */
  countReported(lane: Lane, metrics: IntakeMetrics, isWhole: boolean): void {
    if (this.#removed > 0) metrics.events(lane, "performance_event", this.#removed);
    if (this.#distinctIdsCut > 0) metrics.distinctIdsCut(this.#distinctIdsCut);
    // Most requests drop nothing.
    if (this.dropped > 0) {
      for (const [code, count] of this.#dropCounts()) metrics.events(lane, code, count);
      for (const [code, count] of this.#errorCounts ?? []) metrics.events(lane, code, count);
    }
    if (this.warningsTotal === 0) return;
    for (const [bit, count] of this.warningCounts(isWhole))
      metrics.warnings(warningCodes[bit]!, count);
  }

  /** Returns the warnings to count, by the bit of the warning. */
  protected warningCounts(_isWhole: boolean): ReadonlyMap<number, number> {
    return this.#warningCounts ?? noCounts;
  }
}

function detailOf(code: string, notes: readonly ItemNote[]): string {
  return notes.find((note) => note.code === code)?.detail ?? "";
}

/**
 * Returns the problem of a request whose items all have errors. Its code is that of the first
 * error.
 */
export function problemOfItems(tally: Tally): Problem {
  const first = tally.errors[0]!;
  // Each error code of an item is also a code of the table of request errors.
  const code = first.code as ItemErrorCode;
  if (tally.errorsTotal === 1) return { code, detail: first.detail };
  return {
    code,
    detail: `All ${tally.errorsTotal} events have errors`,
    errors: tally.errors,
    errorsTotal: tally.errorsTotal,
  };
}
