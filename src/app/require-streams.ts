// Ends a reader at its start if NATS permanently refuses to list the streams. After any other
// failure, the reader waits and retries.

import { setTimeout as delay } from "node:timers/promises";
import { managerOf } from "../platform/nats/api.ts";
import type { NatsLink } from "../platform/nats/link.ts";
import { findStreams } from "../readers/stream/stored-stream.ts";

const questionMs = 2_000;
/**
 * Pause in milliseconds before a retry. An account may get JetStream shortly after the server
 * starts to listen.
 */
const againMs = 500;

/** Rejects with a NatsRefusedError if NATS permanently refuses to list the streams. */
export async function requireStreams(link: NatsLink, prefix: string): Promise<void> {
  const refused = async () => {
    try {
      await findStreams(await managerOf(link.connection, { timeoutMs: questionMs }), prefix);
      return undefined;
    } catch (error) {
      return link.refusal(error);
    }
  };
  if ((await refused()) === undefined) return;
  await delay(againMs);
  const refusal = await refused();
  if (refusal !== undefined) throw refusal;
}
