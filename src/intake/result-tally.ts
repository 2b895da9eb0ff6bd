// Counts what became of the events of a request of the newer protocol (v1), and notes it for each of them.

import type { DropCode, ItemErrorCode } from "../errors.ts";
import type { Verdict } from "../events/verdict.ts";
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

  override drop(index: number, code: DropCode, detail: string): void {
    super.drop(index, code, detail);
    this.#results.dropped(index, code);
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
