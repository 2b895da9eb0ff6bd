// The command `gather` runs at a hub. It configures the streams of the hub to copy the streams of
// its leaf nodes, and shows the lag of each leaf node.

import { openBucket, raiseReplicas } from "../gateway/projects/registry/bucket.ts";
import { onceLed } from "../gateway/projects/registry/leader-wait.ts";
import { openUsageBucket, usageBucketName } from "../gateway/projects/usage/usage.ts";
import { ensureStreams } from "../gateway/streams/ensure.ts";
import { type GatheredStream, gatherFrom } from "../gateway/streams/gather.ts";
import { bucketStream } from "../platform/nats/names.ts";
import type { Config } from "../platform/settings/config.ts";
import { audited } from "./audit.ts";
import { type CommandContext, CommandError, note, say, usageExitCode } from "./context.ts";
import { withNats } from "./nats.ts";
import { table } from "./terminal.ts";

const domain = /^[A-Za-z0-9_-]{1,64}$/;

/** Adds the JetStream domains `leaves` to the hub's sources. Also creates the hub's registry. */
export async function gather(
  config: Config,
  leaves: readonly string[],
  context: CommandContext,
): Promise<void> {
  const wrong = leaves.find((leaf) => !domain.test(leaf));
  if (wrong !== undefined) {
    throw new CommandError(
      `gather: a leaf's JetStream domain must match [A-Za-z0-9_-]{1,64} (got "${wrong}")`,
      usageExitCode,
    );
  }
  if (config.hubDomain !== undefined) {
    throw new CommandError(
      "gather must run at the hub. Set PENSTOCK_NATS_URL to the hub's NATS, and unset PENSTOCK_HUB_DOMAIN",
      usageExitCode,
    );
  }
  const log = (fields: object, message: string): void =>
    note({ context }, `gather: ${message}: ${JSON.stringify(fields)}`);
  await withNats({ config, context }, async (connection) => {
    const place = { prefix: config.subjectPrefix, replicas: config.replicas };
    const registry = await onceLed(() => openBucket(connection, place));
    const { streamInfo } = await registry.status();
    await raiseReplicas(connection, {
      config: streamInfo.config,
      replicas: place.replicas,
      log: { warn: log },
    });
    await onceLed(() => openUsageBucket(connection, { ...place, log: { warn: log } }));
    // Atomic batches are turned off, because no gateway publishes to the streams of the hub.
    const ofHub = { ...config, atomicBatches: false };
    const streams = await ensureStreams(connection, ofHub, { info: log, warn: log });
    const connect = () =>
      gatherFrom(connection, {
        streams: [...streams, bucketStream(usageBucketName(place.prefix))],
        leaves,
      });
    const entry = { change: "gather", leaves };
    const gathered = await (leaves.length === 0
      ? connect()
      : audited({ config, context }, entry, connect));
    if (gathered.length === 0)
      say({ context }, "no leaf nodes configured yet: pass their JetStream domains as arguments");
    else for (const line of gatheredTable(gathered)) say({ context }, line);
  });
}

function gatheredTable(gathered: readonly GatheredStream[]): string[] {
  return table([
    ["STREAM", "LEAF", "LAG (MESSAGES)", "LAST HEARD"],
    ...gathered.map(({ stream, leaf, heard }) => [
      stream,
      leaf,
      String(heard?.messagesBehind ?? "-"),
      heard === undefined ? "not yet" : `${(heard.silentMs / 1_000).toFixed(1)} s ago`,
    ]),
  ]);
}
