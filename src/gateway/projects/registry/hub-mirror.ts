// The registry's bucket on a leaf node: a mirror of the hub's, which can be read even while the hub
// is unavailable. A new mirror is empty for a moment, so its metadata records that it has caught
// up.

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

const filledMark = "penstock-filled";

interface HubMirror {
  readonly bucket: string;
  readonly hubDomain: string;
}

export function mirrorOf(bucket: string, hubDomain: string): StreamSource {
  return { name: bucketStream(bucket), external: { api: apiPrefixOf(hubDomain), deliver: "" } };
}

export function isMirrorOf({ mirror }: StreamConfig, hubDomain: string): boolean {
  return mirror?.external?.api === apiPrefixOf(hubDomain);
}

/** Returns whether the mirror has once caught up with the hub. */
export function isFilled({ metadata }: StreamConfig): boolean {
  return metadata?.[filledMark] !== undefined;
}

/** Rejects unless the bucket is a mirror of that hub's and has once caught up with it. */
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
      `open the project registry: stream ${config.name} is not a mirror of the one in domain ${hubDomain}: delete it here, and it is recreated as a mirror`,
    );
  }
  if (isFilled(config)) return;
  const atHub = await lastSequenceAtHub(connection, config.name, hubDomain);
  if (lastSequence < atHub) {
    throw new Error(
      `open the project registry: its mirror has ${lastSequence} of the hub's ${atHub} entries`,
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
