import type { StreamConfig } from "@nats-io/jetstream";

/**
 * Older versions fsync every message of a batch with `sync_interval: always` (nats-server pull
 * request 8539), and a reader may see a batch change during its replication (8369).
 */
const [majorMin, minorMin] = [2, 15];

/**
 * Returns whether a version, such as `2.15.0-RC.1`, stores atomic batches efficiently and safely.
 */
export function storesAtomicBatchesWell(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/** `config` must come from the leader: its metadata contains the leader's version. */
export function takesAtomicBatches(config: StreamConfig): boolean {
  return (
    config.allow_atomic === true && storesAtomicBatchesWell(config.metadata?.["_nats.ver"] ?? "")
  );
}
