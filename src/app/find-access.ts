// Where NATS is, for the processes beside a gateway: they may be started before the embedded
// nats-server that they are to read from.

import type { Log } from "../base/log.ts";
import { retryWithWarning, SparseWarning } from "../base/retry.ts";
import type { CommandContext } from "../cli/context.ts";
import { findNats } from "../cli/nats.ts";
import type { NatsAccess } from "../nats/access.ts";
import type { Config } from "../settings/config.ts";

interface FindOptions {
  readonly host: CommandContext["host"];
  readonly log: Pick<Log, "warn">;
  readonly signal: AbortSignal;
}

const againMs = 500;
const sayAgainMs = 30_000;

/** Waits for an embedded nats-server, where the settings name no other. */
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

/** Fulfilled when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
