// Writes a batch to a target. Where that takes the target too long, the next batches are to have
// less, or the same would be tried for ever.

import { TooSlowError } from "../../platform/base/store-error.ts";
import type { BatchLimit } from "../stream/batch-limit.ts";
import type { SinkBatch, SinkTarget, WriteOutcome } from "./sink-target.ts";

/** Rejects with what the target says, and how much the next ones may have. */
export async function writeWithin(
  limit: BatchLimit,
  target: SinkTarget,
  batch: SinkBatch,
): Promise<WriteOutcome> {
  limit.tries(batch.events.length + batch.rejected.length);
  try {
    const outcome = await target.write(batch);
    limit.succeeded();
    return outcome;
  } catch (error) {
    if (!(error instanceof TooSlowError)) throw error;
    limit.tooSlow();
    const less = `at most ${limit.events} events, or one message`;
    throw new TooSlowError(`${error.message}; the next batches have less: ${less}`, {
      cause: error,
    });
  }
}
