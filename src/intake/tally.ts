// Counts what became of a request's items, for the answer and, once a request, for the metrics.

import type { ClientWarningOrigin, ClientWarningTaker } from "../base/client-warning.ts";
import type { ErrorCode, ItemErrorCode, Problem } from "../base/errors.ts";
import type { Exchange, IntakeReport, ItemNote, Lane } from "../base/types.ts";
import { type DropCode, type WarningCode, warningCodes, warningTable } from "../base/warnings.ts";
import type { Verdict } from "../events/verdict.ts";
import { type Said, textOf } from "./details/item-details.ts";

/** Errors and warnings an answer names; the rest only counts. */
export const itemNotesMax = 20;

/** Counts. Each method is called once a request at most. */
export interface IntakeMetrics {
  /**
   * `none`: stored. `duplicate`: stored before, by an earlier sending of the request. `timeout`:
   * stored or not. `rate_limited`: of a request that was refused whole.
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

// Most requests have no warning: they share this one, which nobody writes to.
const noNotes: ItemNote[] = [];
const noCounts: ReadonlyMap<number, number> = new Map();

export class Tally implements IntakeReport {
  accepted = 0;
  dropped = 0;
  errors = noNotes;
  errorsTotal = 0;
  warningsTotal = 0;
  /** What is named of events that are stored, and of items that are left out. */
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
   * Whether a client hears of each event what became of it: then a request of which something is
   * stored needs no answer for the whole of it.
   */
  get answersInPart(): boolean {
    return false;
  }

  /**
   * All that is to be stored is; or part of it, where the client is told which, and `notSent` says
   * why the store was not asked for the rest.
   */
  answer(exchange: Exchange, _notSent: ErrorCode | undefined): void {
    exchange.answerStored(this);
  }

  /** Whether the answer would name one more item that is left out. */
  get namesDrops(): boolean {
    return this.#drops.length < itemNotesMax;
  }

  /** Whether the answer would name one more event that is in error. */
  get namesErrors(): boolean {
    return this.errors.length < itemNotesMax;
  }

  /** `said` is not read where the answer does not name the item. */
  drop(index: number, code: DropCode, said: Said): void {
    this.dropped++;
    this.warningsTotal++;
    if (code === "no_event") this.#noEvent++;
    else if (code === "no_distinct_id") this.#noDistinctId++;
    else this.#notAnObject++;
    if (!this.namesDrops) return;
    if (this.#drops === noNotes) this.#drops = [];
    this.#drops.push({ index, code, detail: textOf(said) });
  }

  /** The item is neither stored nor missed, so it is in no count of the answer. */
  remove(_index: number): void {
    this.#removed++;
  }

  fail(index: number, code: ItemErrorCode, said: Said): void {
    this.dropped++;
    this.errorsTotal++;
    this.#errorCounts ??= new Map();
    this.#errorCounts.set(code, (this.#errorCounts.get(code) ?? 0) + 1);
    if (!this.namesErrors) return;
    if (this.errors === noNotes) this.errors = [];
    this.errors.push({ index, code, detail: textOf(said) });
  }

  store(index: number, verdict: Verdict): void {
    this.accepted++;
    if (verdict.distinctIdText !== undefined && verdict.distinctIdCut) this.#distinctIdsCut++;
    if (verdict.warnings !== 0) this.#warn(index, verdict.warnings);
  }

  #warn(index: number, bits: number): void {
    this.#warningCounts ??= new Map();
    for (const [bit, code] of warningCodes.entries()) {
      if ((bits & (1 << bit)) === 0) continue;
      this.warningsTotal++;
      this.#warningCounts.set(bit, (this.#warningCounts.get(bit) ?? 0) + 1);
      if (this.#storedWarnings.length >= itemNotesMax) continue;
      if (this.#storedWarnings === noNotes) this.#storedWarnings = [];
      this.#storedWarnings.push({ index, code, detail: warningTable[code].detail });
    }
  }

  /** In the order of their indexes. Where they are too many, items that are lost go first. */
  get warnings(): ItemNote[] {
    if (this.#drops.length === 0) return this.#storedWarnings;
    const named = [...this.#drops, ...this.#storedWarnings].slice(0, itemNotesMax);
    return named.sort((one, other) => one.index - other.index);
  }

  /** Says what is not stored and why, a warning a reason. */
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

  /** Adds the work that was done, whatever comes of it. */
  countWork(metrics: IntakeMetrics): void {
    if (this.slowPathItems > 0) metrics.slowPathItems(this.slowPathItems);
  }

  /**
   * Adds what the rules found, when the client is told of it: a request that is answered with a 503
   * comes again and would count each time. `isWhole` is false where some of what is to be stored is
   * not. Stored events are counted elsewhere, when they are stored.
   */
  countTold(lane: Lane, metrics: IntakeMetrics, isWhole: boolean): void {
    if (this.#removed > 0) metrics.events(lane, "performance_event", this.#removed);
    if (this.#distinctIdsCut > 0) metrics.distinctIdsCut(this.#distinctIdsCut);
    // Most requests have none.
    if (this.dropped > 0) {
      for (const [code, count] of this.#dropCounts()) metrics.events(lane, code, count);
      for (const [code, count] of this.#errorCounts ?? []) metrics.events(lane, code, count);
    }
    if (this.warningsTotal === 0) return;
    for (const [bit, count] of this.warningCounts(isWhole))
      metrics.warnings(warningCodes[bit]!, count);
  }

  /** By bit. */
  protected warningCounts(_isWhole: boolean): ReadonlyMap<number, number> {
    return this.#warningCounts ?? noCounts;
  }
}

function detailOf(code: string, notes: readonly ItemNote[]): string {
  return notes.find((note) => note.code === code)?.detail ?? "";
}

/** The problem of a request whose items are all in error: that of the first one. */
export function problemOfItems(tally: Tally): Problem {
  const first = tally.errors[0]!;
  // The codes of items are codes of the error table too.
  const code = first.code as ItemErrorCode;
  if (tally.errorsTotal === 1) return { code, detail: first.detail };
  return {
    code,
    detail: `All ${tally.errorsTotal} events are in error`,
    errors: tally.errors,
    errorsTotal: tally.errorsTotal,
  };
}
