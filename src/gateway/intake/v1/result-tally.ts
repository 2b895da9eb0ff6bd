// Counts the outcomes of the events of a request of the newer protocol (v1). Records the result of
// each event that is not stored, and the warnings of the others.

import type { ErrorCode, ItemErrorCode, Problem } from "../../../platform/base/errors.ts";
import type { DropCode } from "../../../platform/base/warnings.ts";
import type { Verdict } from "../../../records/verdict.ts";
import type { Exchange, V1Request } from "../../http/port.ts";
import type { Explanation } from "../hints.ts";
import { Tally } from "../tally.ts";
import type { EventResults } from "./event-results.ts";

/** The problem of an answer that could not be built, for example because memory ran out. */
const cannotAnswer: Problem = {
  code: "unavailable",
  detail: "The answer could not be created: send the request again",
};

export class ResultTally extends Tally {
  readonly #v1: V1Request;
  readonly #results: EventResults;

  constructor(v1: V1Request, results: EventResults) {
    super();
    this.#v1 = v1;
    this.#results = results;
  }

  override get answersInPart(): boolean {
    return true;
  }

  override drop(index: number, code: DropCode, explanation: Explanation): void {
    super.drop(index, code, explanation);
    this.#results.dropped(index, code, explanation.hint);
  }

  /** Records a removed event in the answer too. Otherwise the client would retry it. */
  override remove(index: number): void {
    super.remove(index);
    this.#results.dropped(index, "performance_event");
  }

  override fail(index: number, code: ItemErrorCode, explanation: Explanation): void {
    super.fail(index, code, explanation);
    this.#results.dropped(index, code, explanation.hint);
  }

  override store(index: number, verdict: Verdict, hint: string): void {
    super.store(index, verdict, hint);
    this.#results.placed(index, verdict.warnings);
  }

  /**
   * Returns the warnings to count. If only part of the request is stored, only the warnings of
   * stored events count, because the retry reports the others.
   */
  protected override warningCounts(isWhole: boolean): ReadonlyMap<number, number> {
    return isWhole ? super.warningCounts(isWhole) : this.#results.storedWarnings();
  }

  override answer(exchange: Exchange, notSent: ErrorCode | undefined): void {
    this.#results.answer(this.#v1, notSent)?.catch(() => exchange.answerProblem(cannotAnswer));
  }
}
