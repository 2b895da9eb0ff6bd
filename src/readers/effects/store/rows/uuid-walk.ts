// Finds the uuids by which the persons of many ids are shown, round by round: each id's own row has
// the uuid, or the next row to read. Queries nothing: the caller provides the rows.

import { StoreError } from "../../../../platform/base/store-error.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type { ProjectIds } from "../port.ts";

interface Step {
  readonly projectId: string;
  /** The uuid of the row to read. */
  readonly uuid: string;
  /** The index of the id that it is for. */
  readonly at: number;
}

/** The row of the step of that index: `first_uuid` and `merged_into`. */
export type StepRow = readonly [step: number, firstUuid: string | null, mergedInto: string | null];

export class UuidWalk {
  /** In the order of the ids; null: the id has no person, or it is not known yet. */
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

  /** The rows to read now; empty: done. */
  get steps(): readonly Step[] {
    return this.#steps;
  }

  /**
   * Takes the existing rows. Throws a StoreError if a row is missing that another one points to.
   */
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
      throw new StoreError(
        "look up people: the database is damaged: a row points to one that does not exist",
      );
    this.#isFirst = false;
    this.#steps = next;
  }
}
