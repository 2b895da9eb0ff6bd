// Counts what became of a request's items, for the answer and, once a request, for the metrics.

import { type ItemErrorCode, type Problem, type WarningCode, warningCodes } from "../errors.ts";
import type { DropReason, Verdict } from "../events/verdict.ts";
import type { Exchange, IntakeReport, ItemNote, Lane, RemarkTaker } from "../types.ts";

/** Errors and warnings an answer names; the rest only counts. */
export const itemNotesMax = 20;

/** Once a request at most: plain additions. */
export interface IntakeMetrics {
  /** `none`: stored. `duplicate`: stored before, by an earlier sending of the request. `timeout`: stored or not. `rate_limited`: of a request that was refused whole. */
  events(
    lane: Lane,
    reason: "none" | "duplicate" | "timeout" | "rate_limited" | "performance_event" | DropReason | ItemErrorCode,
    count: number,
  ): void;
  warnings(code: WarningCode, count: number): void;
  slowPathItems(count: number): void;
  distinctIdsCut(count: number): void;
}

const warningDetails: Record<WarningCode, string> = {
  missing_set: "$identify carries no $set",
  missing_group_set: "$groupidentify carries no $group_set",
  missing_current_url: "$pageview carries no $current_url",
  missing_screen_name: "$screen carries no $screen_name",
  missing_timestamp: "timestamp is absent: stored with the time of receipt",
  invalid_timestamp: "timestamp cannot be read: stored with the time of receipt",
  timestamp_in_future: "the event lies more than 23 hours ahead: stored with the time of receipt",
  invalid_sent_at: "sent_at cannot be read: timestamps are stored as they came",
  invalid_offset: "offset is no number of milliseconds that leads to a year from 0 to 9999: left aside",
  invalid_unset: "$unset is to be an array of names, or an object with them: what is neither is left aside",
  invalid_uuid: "uuid is not a UUID: stored with a new one",
  invalid_person_profile: "$process_person_profile is not a boolean: taken as true",
  invalid_utf8: "bytes that are not UTF-8: stored with U+FFFD in their place",
};

const dropDetails: Record<DropReason, string> = {
  no_event: "event is absent, not a string or empty: dropped silently",
  no_distinct_id: "distinct_id is absent or empty: dropped silently",
};

// Most requests have nothing to remark: they share this one, which nobody writes to.
const noNotes: ItemNote[] = [];

export class Tally implements IntakeReport {
  accepted = 0;
  dropped = 0;
  errors = noNotes;
  errorsTotal = 0;
  warnings = noNotes;
  warningsTotal = 0;
  slowPathItems = 0;
  #distinctIdsCut = 0;
  #removed = 0;
  #noEvent = 0;
  #noDistinctId = 0;
  #errorCounts: Map<ItemErrorCode, number> | undefined = undefined;
  #warningCounts: Map<number, number> | undefined = undefined;

  /** Whether a client hears of each event what became of it: then a request of which something is stored needs no answer for the whole of it. */
  get answersInPart(): boolean {
    return false;
  }

  /** All that is to be stored is. */
  answer(exchange: Exchange): void {
    exchange.answerStored(this);
  }

  drop(reason: DropReason, _index: number): void {
    this.dropped++;
    if (reason === "no_event") this.#noEvent++;
    else this.#noDistinctId++;
  }

  /** Neither stored nor missed: it is in no count of the answer. */
  remove(): void {
    this.#removed++;
  }

  fail(index: number, code: ItemErrorCode, detail: string): void {
    this.dropped++;
    this.errorsTotal++;
    this.#errorCounts ??= new Map();
    this.#errorCounts.set(code, (this.#errorCounts.get(code) ?? 0) + 1);
    if (this.errors.length >= itemNotesMax) return;
    if (this.errors === noNotes) this.errors = [];
    this.errors.push({ index, code, detail });
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
      if (this.warnings.length >= itemNotesMax) continue;
      if (this.warnings === noNotes) this.warnings = [];
      this.warnings.push({ index, code, detail: warningDetails[code] });
    }
  }

  /** Says what is not stored and why, a remark a reason. */
  remark(projectId: string, remarks: RemarkTaker): void {
    for (const [code, events] of [
      ["no_event", this.#noEvent] as const,
      ["no_distinct_id", this.#noDistinctId] as const,
    ]) {
      if (events > 0) remarks.notStored(projectId, { code, detail: dropDetails[code], events });
    }
    for (const [code, events] of this.#errorCounts ?? []) {
      const detail = this.errors.find((note) => note.code === code)?.detail ?? "";
      remarks.notStored(projectId, { code, detail, events });
    }
  }

  /** Adds what the rules found. Stored events are counted when they are stored. */
  countJudged(lane: Lane, metrics: IntakeMetrics): void {
    if (this.#removed > 0) metrics.events(lane, "performance_event", this.#removed);
    if (this.#noEvent > 0) metrics.events(lane, "no_event", this.#noEvent);
    if (this.#noDistinctId > 0) metrics.events(lane, "no_distinct_id", this.#noDistinctId);
    if (this.slowPathItems > 0) metrics.slowPathItems(this.slowPathItems);
    if (this.#distinctIdsCut > 0) metrics.distinctIdsCut(this.#distinctIdsCut);
    for (const [code, count] of this.#errorCounts ?? []) metrics.events(lane, code, count);
    for (const [bit, count] of this.#warningCounts ?? []) metrics.warnings(warningCodes[bit]!, count);
  }
}

/** All items ended in an error: the first one's is the request's. */
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
