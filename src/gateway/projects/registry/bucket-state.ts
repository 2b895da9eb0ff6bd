// The state of the registry's bucket, as its leader says it. In newer nats-servers a member of a
// group without a leader answers too, from a store that may have been cut back when it started.
// Such an answer is no fact, so it counts as none.

import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { ledStreamInfo, managerOf } from "../../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../../platform/nats/names.ts";

export interface BucketState {
  /** When the stream was made: tells a bucket from another one of the same name. */
  readonly created: string;
  /** The sequence of the newest entry, also when that entry is gone. */
  readonly lastSequence: number;
  readonly entries: number;
  readonly config: StreamConfig;
}

export interface BucketReader {
  /** The stream's name. */
  readonly name: string;
  /**
   * Undefined: there is no such bucket. Rejects when JetStream does not answer, or no leader does.
   */
  state(): Promise<BucketState | undefined>;
  /**
   * The first entry at this sequence or after it, as the leader has it; undefined when there is
   * none.
   */
  next(sequence: number): Promise<BucketEntry | undefined>;
}

export interface BucketEntry {
  /** The project's id, where the entry is a project's. */
  readonly key: string;
  readonly operation: "PUT" | "DEL" | "PURGE";
  readonly revision: number;
  readonly value: Uint8Array;
}

/** How long the registry's questions to JetStream may take. */
export const registryTimeoutMs = 3_000;

/** `bucket`: its name, without the stream's prefix. */
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
      // This is no direct get, because any member may answer that, and only the leader counts.
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
