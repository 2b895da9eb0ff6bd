// The registry's bucket beside a leaf node: a mirror of the hub's bucket, which can be read also
// while the hub is away. A new mirror is empty for a moment, so its metadata tells when it first
// had everything that the hub has. Must not write to the hub.

import type { StreamConfig, StreamSource } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import {
  apiCodes,
  apiPrefixOf,
  isApiError,
  isFromLeader,
  managerOf,
  NoLeaderError,
} from "../../../platform/nats/api.ts";
import { bucketStream } from "../../../platform/nats/names.ts";
import { bucketReader, registryTimeoutMs } from "./bucket-state.ts";

/**
 * The key in the metadata of the bucket's stream that is set once the mirror has first caught up
 * with the hub.
 */
const filledMark = "penstock-filled";

interface HubMirror {
  /** The bucket's name. */
  readonly bucket: string;
  readonly hubDomain: string;
}

export function mirrorOf(bucket: string, hubDomain: string): StreamSource {
  return { name: bucketStream(bucket), external: { api: apiPrefixOf(hubDomain), deliver: "" } };
}

export function isMirrorOf({ mirror }: StreamConfig, hubDomain: string): boolean {
  return mirror?.external?.api === apiPrefixOf(hubDomain);
}

/** Whether the mirror has once had everything that the hub had. */
export function isFilled({ metadata }: StreamConfig): boolean {
  return metadata?.[filledMark] !== undefined;
}

/**
 * Rejects unless the bucket is a mirror of that hub's bucket and has once had everything in it. The
 * hub is needed only until the mirror has.
 */
export async function requireFilled(
  connection: NatsConnection,
  { bucket, hubDomain }: HubMirror,
): Promise<void> {
  const found = await (await bucketReader(connection, bucket)).state();
  if (found === undefined)
    throw new Error(`open the project registry: there is no bucket ${bucket}`);
  const { config, lastSequence } = found;
  if (!isMirrorOf(config, hubDomain)) {
    throw new Error(
      `open the project registry: stream ${config.name} is not a mirror of the one in domain ${hubDomain}: delete it here, and it is made again as one`,
    );
  }
  if (isFilled(config)) return;
  const atHub = await lastSequenceAtHub(connection, config.name, hubDomain);
  if (lastSequence < atHub) {
    throw new Error(
      `open the project registry: its mirror is at ${lastSequence} of ${atHub} entries of the hub's`,
    );
  }
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const metadata = { ...config.metadata, [filledMark]: new Date().toISOString() };
  await manager.streams.update(config.name, { metadata });
}

async function lastSequenceAtHub(
  connection: NatsConnection,
  stream: string,
  hubDomain: string,
): Promise<number> {
  try {
    const hub = await managerOf(connection, {
      domain: hubDomain,
      timeoutMs: registryTimeoutMs,
    });
    const info = await hub.streams.info(stream);
    if (!isFromLeader(info)) throw new NoLeaderError(stream);
    return info.state.last_seq;
  } catch (error) {
    const missing = isApiError(error, apiCodes.streamNotFound);
    const why = missing
      ? "has no projects yet: run `penstock gather` there"
      : `does not answer: ${(error as Error).message}`;
    throw new Error(`open the project registry: the hub, domain ${hubDomain}, ${why}`, {
      cause: error,
    });
  }
}
