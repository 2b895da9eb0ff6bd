import { setTimeout as delay } from "node:timers/promises";
import { managerOf } from "../platform/nats/api.ts";
import type { NatsLink } from "../platform/nats/link.ts";
import { findStreams } from "../readers/stream/stored-stream.ts";

const questionMs = 2_000;
/**
 * Pause before the second try: an account may get JetStream shortly after the server has started.
 */
const againMs = 500;

/**
 * Rejects with a NatsRefusedError if NATS permanently refuses to list the streams. Ignores all
 * other failures, because the reader retries.
 */
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
