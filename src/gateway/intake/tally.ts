// Counts the outcomes of the items of a request. The answer and the metrics use these counts.

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
import type { RequestQuarantine } from "./quarantine-port.ts";

export const itemNotesMax = 20;

export type EventReason =
  | "none"
  | "duplicate"
  | "timeout"
  | "rate_limited"
  | "performance_event"
  | FilterCode
  | DropCode
  | ItemErrorCode;

/** Why the rules of a project keep an event from being stored. */
export type FilterCode = "dropped_by_rule" | "quarantined";

export interface IntakeMetrics {
  events(lane: Lane, reason: EventReason, count: number): void;
  warnings(code: WarningCode, count: number): void;
  slowPathItems(count: number): void;
  distinctIdsCut(count: number): void;
}

// Most requests share this array, so it must never be written to.
const noNotes: ItemNote[] = [];
const noCounts: ReadonlyMap<number, number> = new Map();

export class Tally implements IntakeReport {
  accepted = 0;
  dropped = 0;
  filtered = 0;
  errors = noNotes;
  errorsTotal = 0;
  warningsTotal = 0;
  #storedWarnings = noNotes;
  #drops = noNotes;
  slowPathItems = 0;
  /** The items in quarantine; undefined until the first one. */
  quarantine: RequestQuarantine | undefined = undefined;
  #distinctIdsCut = 0;
  #removed = 0;
  #quarantined = 0;
  #notStored: Map<DropCode | ItemErrorCode, number> | undefined = undefined;
  #warningCounts: Map<number, number> | undefined = undefined;

  get answersInPart(): boolean {
    return false;
  }

  answer(exchange: Exchange, _notSent: ErrorCode | undefined): void {
    exchange.answerStored(this);
  }

  get namesDrops(): boolean {
    return this.#drops.length < itemNotesMax;
  }

  get namesErrors(): boolean {
    return this.errors.length < itemNotesMax;
  }

  get namesWarnings(): boolean {
    return this.#storedWarnings.length < itemNotesMax;
  }

  drop(index: number, code: DropCode, explanation: Explanation): void {
    this.#countNotStored(code);
    this.warningsTotal++;
    if (!this.namesDrops) return;
    if (this.#drops === noNotes) this.#drops = [];
    this.#drops.push({ index, code, detail: textOf(explanation) });
  }

  remove(_index: number): void {
    this.#removed++;
  }

  /** Counts an event that the rules of the project do not store. */
  filter(_index: number, code: FilterCode): void {
    this.filtered++;
    if (code === "quarantined") this.#quarantined++;
  }

  fail(index: number, code: ItemErrorCode, explanation: Explanation): void {
    this.#countNotStored(code);
    this.errorsTotal++;
    if (!this.namesErrors) return;
    if (this.errors === noNotes) this.errors = [];
    this.errors.push({ index, code, detail: textOf(explanation) });
  }

  #countNotStored(code: DropCode | ItemErrorCode): void {
    this.dropped++;
    this.#notStored ??= new Map();
    this.#notStored.set(code, (this.#notStored.get(code) ?? 0) + 1);
  }

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

  /** The warnings, sorted by index. Warnings about dropped items have priority. */
  get warnings(): ItemNote[] {
    if (this.#drops.length === 0) return this.#storedWarnings;
    const named = [...this.#drops, ...this.#storedWarnings].slice(0, itemNotesMax);
    return named.sort((one, other) => one.index - other.index);
  }

  warnNotStored(origin: ClientWarningOrigin, clientWarnings: ClientWarningTaker): void {
    for (const [code, events] of this.#notStored ?? []) {
      const named = [...this.#drops, ...this.errors].find((note) => note.code === code);
      clientWarnings.notStored(origin, { code, detail: named?.detail ?? "", events });
    }
  }

  /**
   * Call this only if the client receives the results. After a 503, the client retries the request,
   * and the retry is counted instead.
   */
  countReported(lane: Lane, metrics: IntakeMetrics, isWhole: boolean): void {
    if (this.#removed > 0) metrics.events(lane, "performance_event", this.#removed);
    if (this.#quarantined > 0) metrics.events(lane, "quarantined", this.#quarantined);
    const droppedByRule = this.filtered - this.#quarantined;
    if (droppedByRule > 0) metrics.events(lane, "dropped_by_rule", droppedByRule);
    if (this.#distinctIdsCut > 0) metrics.distinctIdsCut(this.#distinctIdsCut);
    if (this.#notStored !== undefined)
      for (const [code, count] of this.#notStored) metrics.events(lane, code, count);
    if (this.warningsTotal === 0) return;
    for (const [bit, count] of this.warningCounts(isWhole))
      metrics.warnings(warningCodes[bit]!, count);
  }

  protected warningCounts(_isWhole: boolean): ReadonlyMap<number, number> {
    return this.#warningCounts ?? noCounts;
  }
}

export function problemOfItems(tally: Tally): Problem {
  const first = tally.errors[0]!;
  const code = first.code as ItemErrorCode;
  if (tally.errorsTotal === 1) return { code, detail: first.detail };
  return {
    code,
    detail: `All ${tally.errorsTotal} events have errors`,
    errors: tally.errors,
    errorsTotal: tally.errorsTotal,
  };
}
