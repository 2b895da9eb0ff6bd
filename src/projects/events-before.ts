// Whether events were ever stored under the prefix. Only a project's events are stored, so beside such streams a registry in which no
// project ever was is one that was lost. Must not change anything.

import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isFromLeader } from "./bucket-state.ts";
import { NoLeaderError } from "./leader-wait.ts";

const apiTimeoutMs = 3_000;
const lanes = ["live", "historical"];

/** Rejects when somebody who must know does not answer. Not for a leaf's streams, which begin at a sequence made of the time. */
export async function haveEventsBeenStored(connection: NatsConnection, prefix: string): Promise<boolean> {
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  for (const lane of lanes) {
    for await (const name of manager.streams.names(`${prefix}.${lane}.>`)) {
      const info = await manager.streams.info(name);
      if (!isFromLeader(info)) throw new NoLeaderError(name);
      if (info.state.last_seq > 0) return true;
    }
  }
  return false;
}
