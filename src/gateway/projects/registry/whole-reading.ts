// All entries of the bucket at one moment: what the leader has, none of it missing. Must not follow
// changes.

import { setTimeout as delay } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import type { BucketEntry, BucketReader } from "./bucket-state.ts";

export interface WholeReading {
  /** The reading has everything that was written up to this sequence, and nothing written later. */
  readonly lastSequence: number;
  /** By the entry's key; deletion markers are among them. */
  readonly entries: ReadonlyMap<string, BucketEntry>;
}

const triesMax = 10;
const againMs = 100;

/**
 * Rejects when the leader does not answer, or when the replica that reads the entries out stays
 * behind the leader.
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
    // A reading that ends below the last sequence is whole too where the leader has no later entry:
    // entries can be removed for good.
    const isWhole =
      sequence >= state.lastSequence || (await reader.next(sequence + 1)) === undefined;
    if (isWhole) return { lastSequence: Math.max(sequence, state.lastSequence), entries };
    if (tries === triesMax)
      throw new Error(`read stream ${reader.name}: a copy that is behind its leader answers`);
    await delay(againMs);
  }
}
