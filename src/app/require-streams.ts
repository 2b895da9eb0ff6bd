// Ends a reader at its start if NATS refuses for good to list the streams. Later, and for every
// other failure, the reader waits and tries again by itself.

import { setTimeout as delay } from "node:timers/promises";
import { managerOf } from "../platform/nats/api.ts";
import type { NatsLink } from "../platform/nats/link.ts";
import { findStreams } from "../readers/stream/stored-stream.ts";

const questionMs = 2_000;
/** An account may get its JetStream a moment after its server listens. */
const againMs = 500;

/** Rejects with a NatsRefusedError. */
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
