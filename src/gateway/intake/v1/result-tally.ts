// Counts what became of the events of a request of the newer protocol (v1), and notes the result of
// each event that is not to be stored, and the warnings of the others.

import type { ErrorCode, ItemErrorCode, Problem } from "../../../platform/base/errors.ts";
import type { DropCode } from "../../../platform/base/warnings.ts";
import type { Verdict } from "../../../records/verdict.ts";
import type { Exchange, V1Request } from "../../http/port.ts";
import type { Said } from "../hints.ts";
import { Tally } from "../tally.ts";
import type { EventResults } from "./event-results.ts";

/** The answer could not be put together, for want of memory for example. */
const notTold: Problem = {
  code: "unavailable",
  detail: "The answer cannot be given: send the request again",
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

  override drop(index: number, code: DropCode, said: Said): void {
    super.drop(index, code, said);
    this.#results.dropped(index, code, said.hint);
  }

  /**
   * The answer names each event, so it also names a removed one: the client would retry it
   * otherwise.
   */
  override remove(index: number): void {
    super.remove(index);
    this.#results.dropped(index, "performance_event");
  }

  override fail(index: number, code: ItemErrorCode, said: Said): void {
    super.fail(index, code, said);
    this.#results.dropped(index, code, said.hint);
  }

  override store(index: number, verdict: Verdict, hint: string): void {
    super.store(index, verdict, hint);
    this.#results.placed(index, verdict.warnings);
  }

  /**
   * Where only part is stored, only the warnings of stored events count: the others come again with
   * the retry.
   */
  protected override warningCounts(isWhole: boolean): ReadonlyMap<number, number> {
    return isWhole ? super.warningCounts(isWhole) : this.#results.storedWarnings();
  }

  override answer(exchange: Exchange, notSent: ErrorCode | undefined): void {
    this.#results.answer(this.#v1, notSent)?.catch(() => exchange.answerProblem(notTold));
  }
}
