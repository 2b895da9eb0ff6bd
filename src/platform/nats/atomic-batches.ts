// Atomic batches: what JetStream calls several messages that it stores as one. Which streams take
// them so that it is worth it. Gateway, streams and doctor reckon with the same rule.

import type { StreamConfig } from "@nats-io/jetstream";

/**
 * Before 2.15 a single node with `sync_interval: always` fsyncs every message of a batch, and a
 * batch that is being replicated can be read while it is changed (pull requests 8539 and 8369 of
 * nats-server).
 */
const [majorMin, minorMin] = [2, 15];

/** Whether a nats-server of that version, such as `2.15.1` or `2.15.0-RC.1`, stores them well. */
export function storesAtomicBatchesWell(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/**
 * Whether the stream takes atomic batches from the server that leads it. `config` is from that
 * server's answer, in whose metadata it says its version.
 */
export function takesAtomicBatches(config: StreamConfig): boolean {
  return (
    config.allow_atomic === true && storesAtomicBatchesWell(config.metadata?.["_nats.ver"] ?? "")
  );
}
