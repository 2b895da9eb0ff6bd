// Atomic batches: several messages that JetStream stores as a unit. Decides which streams should
// use them; gateway, streams and doctor share this rule.

import type { StreamConfig } from "@nats-io/jetstream";

/**
 * Before 2.15 a single node with `sync_interval: always` fsyncs every message of a batch, and a
 * batch that is being replicated can be read while it changes (pull requests 8539 and 8369 of
 * nats-server).
 */
const [majorMin, minorMin] = [2, 15];

/**
 * Whether a nats-server of that version, such as `2.15.1` or `2.15.0-RC.1`, stores batches
 * efficiently and safely.
 */
export function storesAtomicBatchesWell(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/**
 * Whether the stream accepts atomic batches from its leader. `config` is from the leader's
 * response, whose metadata contains the server's version.
 */
export function takesAtomicBatches(config: StreamConfig): boolean {
  return (
    config.allow_atomic === true && storesAtomicBatchesWell(config.metadata?.["_nats.ver"] ?? "")
  );
}
