// Puts an applier together, for the writer and for a rebuild: both have to apply the same frames in
// the same way. The sizes of what is applied at a time are here for the same reason.

import type { Lane } from "../../../platform/base/lane.ts";
import { DuplicatesBudget } from "../duplicates/duplicates-budget.ts";
import { FrameLines } from "../lines/frame-lines.ts";
import { People } from "../people/people.ts";
import type { PeopleOptions } from "../people/people-options.ts";
import { Spikes } from "../spikes/spikes.ts";
import { Usage } from "../usage/usage.ts";
import { Applier, type ApplierOptions } from "./applier.ts";

/** Events of one transaction. Only a batch that catches up has as many. */
export const batchEventsDefault = 100_000;
/** A batch is read and applied in steps, so that others have the event loop in between. */
export const stepEventsMax = 2_000;
export const stepBytesMax = 2 * 1_048_576;

const duplicatesBytesDefault = 256 * 1_048_576;

interface NewApplierOptions
  extends Pick<ApplierOptions, "store" | "writePart" | "changedBytesMax"> {
  /** What the names of the streams begin with. */
  readonly prefix: string;
  /** Bytes of all memories of duplicates together. */
  readonly duplicatesBytesMax?: number | undefined;
  /** Streams that will come, where that is known: each has its share of them from the beginning. */
  readonly streams?: readonly { readonly lane: Lane }[];
  readonly people?: PeopleOptions | undefined;
}

export function newApplier(options: NewApplierOptions): Applier {
  const { store, writePart, changedBytesMax, prefix, people } = options;
  const { duplicatesBytesMax = duplicatesBytesDefault, streams = [] } = options;
  return new Applier({
    ...{ store, writePart, changedBytesMax },
    lines: new FrameLines(),
    people: new People(people),
    usage: new Usage(),
    spikes: new Spikes({ prefix }),
    budget: new DuplicatesBudget({ bytesMax: duplicatesBytesMax, streams }),
  });
}
