// Finds the NATS server of a gateway for another process, even before the server has started.

import { setTimeout as delay } from "node:timers/promises";
import type { CommandContext } from "../commands/context.ts";
import { findNats } from "../commands/nats.ts";
import type { Log } from "../platform/base/log.ts";
import { pauseUntilAborted, retryWithWarning, SparseWarning } from "../platform/base/retry.ts";
import type { NatsAccess } from "../platform/nats/access.ts";
import { managerOf } from "../platform/nats/api.ts";
import type { NatsLink } from "../platform/nats/link.ts";
import type { Config } from "../platform/settings/config.ts";
import { findStreams } from "../readers/stream/stored-stream.ts";

interface FindOptions {
  readonly host: CommandContext["host"];
  readonly log: Pick<Log, "warn">;
  readonly signal: AbortSignal;
}

const againMs = 500;
const sayAgainMs = 30_000;
const lookMs = 1_000;

export async function findAccess(config: Config, options: FindOptions): Promise<NatsAccess> {
  const { host, log, signal } = options;
  return await retryWithWarning(async () => findNats(config, host), {
    pauseMs: againMs,
    signal,
    warning: new SparseWarning(log, sayAgainMs),
    explain: (error) => ({
      fields: { reason: (error as Error).message },
      message: "waiting for NATS",
    }),
  });
}

interface Linked {
  readonly host: CommandContext["host"];
  readonly access: NatsAccess;
  readonly link: Pick<NatsLink, "connected">;
  readonly signal: AbortSignal;
}

/**
 * Waits until the link is down and the embedded nats-server has a new address or token. Then
 * returns true. Returns false if the signal aborts.
 */
export async function natsHasMoved(config: Config, linked: Linked): Promise<boolean> {
  const { host, access, link, signal } = linked;
  while (!signal.aborted) {
    await pauseUntilAborted(lookMs, signal);
    if (link.connected || config.natsUrl !== undefined) continue;
    try {
      const now = findNats(config, host);
      if (now.natsUrl !== access.natsUrl || now.natsToken !== access.natsToken) return true;
    } catch {}
  }
  return false;
}

const questionMs = 2_000;
const jetStreamWaitMs = 500;

/** Checks that NATS can list the streams. Rejects if NATS permanently refuses the request. */
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
  await delay(jetStreamWaitMs);
  const refusal = await refused();
  if (refusal !== undefined) throw refusal;
}
