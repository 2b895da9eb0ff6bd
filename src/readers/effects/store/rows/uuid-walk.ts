import { StoreError } from "../../../../platform/base/store-error.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type { ProjectIds } from "../port.ts";

interface Step {
  readonly projectId: string;
  /** The row to read. */
  readonly uuid: string;
  /** Index of the requested id. */
  readonly at: number;
}

/** A row that was read for the step with this index. */
export type StepRow = readonly [step: number, firstUuid: string | null, mergedInto: string | null];

export class UuidWalk {
  /** In the order of the ids; null if the id has no person or is not resolved yet. */
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

  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** Throws a StoreError if a row is missing that another row points to. */
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
