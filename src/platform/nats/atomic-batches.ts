// Atomic batches: several messages that JetStream stores as a unit. Decides for each stream whether
// to use them. Gateway, streams and doctor share this rule.

import type { StreamConfig } from "@nats-io/jetstream";

/**
 * The first version that is fit for atomic batches. In older versions a single node with
 * `sync_interval: always` fsyncs every message of a batch (nats-server pull request 8539), and a
 * reader may see a batch change during its replication (pull request 8369).
 */
const [majorMin, minorMin] = [2, 15];

/**
 * Returns whether a version of nats-server, such as `2.15.1` or `2.15.0-RC.1`, stores batches
 * efficiently and safely.
 */
export function storesAtomicBatchesWell(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/**
 * Returns whether the stream accepts atomic batches and its leader has a suitable version. `config`
 * must come from the leader: its metadata contains the version.
 */
export function takesAtomicBatches(config: StreamConfig): boolean {
  return (
    config.allow_atomic === true && storesAtomicBatchesWell(config.metadata?.["_nats.ver"] ?? "")
  );
}
