// Reads the registry's bucket through its leader. In newer nats-servers a member of a group without
// a leader answers too, from a store that may have been truncated. Such an answer is ignored.

import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { ledStreamInfo, managerOf } from "../../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../../platform/nats/names.ts";

export interface BucketState {
  /** When the stream was created. Distinguishes buckets of the same name. */
  readonly created: string;
  /** The sequence of the newest entry, even if the entry was removed. */
  readonly lastSequence: number;
  readonly entries: number;
  readonly config: StreamConfig;
}

export interface BucketReader {
  readonly name: string;
  /**
   * Returns undefined if there is no bucket. Rejects if JetStream or the leader does not answer.
   */
  state(): Promise<BucketState | undefined>;
  /** Returns the leader's first entry at or after the sequence; undefined if there is none. */
  next(sequence: number): Promise<BucketEntry | undefined>;
}

export interface BucketEntry {
  /** The project's id, if the entry is a project's. */
  readonly key: string;
  readonly operation: "PUT" | "DEL" | "PURGE";
  readonly revision: number;
  readonly value: Uint8Array;
}

export const registryTimeoutMs = 3_000;

/** `bucket`: the bucket's name, without the stream's prefix. */
export async function bucketReader(
  connection: NatsConnection,
  bucket: string,
): Promise<BucketReader> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const name = bucketStream(bucket);
  const subjects = bucketSubjects(bucket);
  return {
    name,
    state: () => stateOf(manager, name),
    async next(sequence) {
      // Not a direct get, because any member may answer that, and only the leader counts.
      const query = { seq: sequence, next_by_subj: `${subjects}>` };
      const message = await manager.streams.getMessage(name, query);
      if (message === null) return undefined;
      const operation = message.header?.get("KV-Operation");
      return {
        key: message.subject.slice(subjects.length),
        operation: operation === "DEL" || operation === "PURGE" ? operation : "PUT",
        revision: message.seq,
        value: message.data,
      };
    },
  };
}

async function stateOf(manager: JetStreamManager, name: string): Promise<BucketState | undefined> {
  const info = await ledStreamInfo(manager, name);
  if (info === undefined) return undefined;
  const { created, config, state } = info;
  return { created, config, lastSequence: state.last_seq, entries: state.messages };
}

export interface WholeReading {
  /** The sequence up to which the reading is complete. It has nothing that was written later. */
  readonly lastSequence: number;
  readonly entries: ReadonlyMap<string, BucketEntry>;
}

const triesMax = 10;
const retryMs = 100;

/** Rejects if the leader does not answer, or if the delivering replica keeps lagging. */
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
    // Entries can be removed permanently, so a reading that ends below the last sequence is also
    // complete if the leader has no later entry.
    const isWhole =
      sequence >= state.lastSequence || (await reader.next(sequence + 1)) === undefined;
    if (isWhole) return { lastSequence: Math.max(sequence, state.lastSequence), entries };
    if (tries === triesMax)
      throw new Error(`read stream ${reader.name}: the answering replica lags behind its leader`);
    await delay(retryMs);
  }
}
