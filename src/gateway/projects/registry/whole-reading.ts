// Reads all entries of the bucket at one moment, complete according to the leader's state. Does not
// follow changes.

import { setTimeout as delay } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import type { BucketEntry, BucketReader } from "./bucket-state.ts";

export interface WholeReading {
  /** The sequence up to which the reading is complete. It has nothing that was written later. */
  readonly lastSequence: number;
  /** The entries and deletion markers by key. */
  readonly entries: ReadonlyMap<string, BucketEntry>;
}

const triesMax = 10;
const retryMs = 100;

/**
 * Reads all entries. Rejects if the leader does not answer, or if the replica that delivers the
 * entries keeps lagging.
 */
export async function readWhole(bucket: KV, reader: BucketReader): Promise<WholeReading> {
  for (let tries = 1; ; tries++) {
    const state = await reader.state();
    if (state === undefined || state.entries === 0)
      return { lastSequence: state?.lastSequence ?? 0, entries: new Map() };
    const entries = new Map<string, BucketEntry>();
    let sequence = 0;
    for await (const entry of await bucket.history()) {
      entries.set(entry.key, entry);
      sequence = Math.max(sequence, entry.revision);
    }
    // A reading that ends below the last sequence is also complete if the leader has no later
    // entry, because entries can be removed permanently.
    const isWhole =
      sequence >= state.lastSequence || (await reader.next(sequence + 1)) === undefined;
    if (isWhole) return { lastSequence: Math.max(sequence, state.lastSequence), entries };
    if (tries === triesMax)
      throw new Error(`read stream ${reader.name}: the answering replica lags behind its leader`);
    await delay(retryMs);
  }
}
