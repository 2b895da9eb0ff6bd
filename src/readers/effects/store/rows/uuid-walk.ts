// Finds the uuids by which the persons of many ids are shown, round by round: each id's own row
// says it, or which row to look at next. Asks nothing of a database: whoever has one brings rows.

import { StoreError } from "../../../../platform/base/store-error.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type { ProjectIds } from "../port.ts";

interface Step {
  readonly projectId: string;
  /** That of the row to look at. */
  readonly uuid: string;
  /** Which of the ids it is for. */
  readonly at: number;
}

/** What a row says of the step of that index: `first_uuid` and `merged_into`. */
export type StepRow = readonly [step: number, firstUuid: string | null, mergedInto: string | null];

export class UuidWalk {
  /** In the order of the ids; null: nobody has the id, or it is not known yet. */
  readonly shown: (string | null)[] = [];
  #steps: Step[] = [];
  #isFirst = true;

  constructor(ids: readonly ProjectIds[]) {
    for (const { projectId, distinctIds } of ids) {
      for (const distinctId of distinctIds) {
        const at = this.shown.length;
        this.#steps.push({ projectId, uuid: personUuid(projectId, distinctId), at });
        this.shown.push(null);
      }
    }
  }

  /** The rows to look at now; none: it is done. */
  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** Takes the rows that there are. Throws a StoreError where one is missing that another names. */
  take(rows: Iterable<StepRow>): void {
    const next: Step[] = [];
    let found = 0;
    for (const [index, firstUuid, mergedInto] of rows) {
      const step = this.#steps[index]!;
      found++;
      if (mergedInto === null) this.shown[step.at] = firstUuid ?? step.uuid;
      else next.push({ ...step, uuid: mergedInto });
    }
    if (!this.#isFirst && found < this.#steps.length)
      throw new StoreError("look up people: the database is damaged: a row names one that is gone");
    this.#isFirst = false;
    this.#steps = next;
  }
}
