// Counts what became of the events of a request of the newer protocol (v1), and notes it for each of them.

import type { ItemErrorCode } from "../errors.ts";
import type { DropReason, Verdict } from "../events/verdict.ts";
import type { V1Request } from "../types.ts";
import type { EventResults } from "./event-results.ts";
import { Tally } from "./tally.ts";

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

  override drop(reason: DropReason, index: number): void {
    super.drop(reason, index);
    this.#results.dropped(index, reason);
  }

  override fail(index: number, code: ItemErrorCode, detail: string): void {
    super.fail(index, code, detail);
    this.#results.dropped(index, code);
  }

  override store(index: number, verdict: Verdict): void {
    super.store(index, verdict);
    this.#results.placed(index, verdict.warnings);
  }

  override answer(): void {
    this.#results.answer(this.#v1);
  }
}
