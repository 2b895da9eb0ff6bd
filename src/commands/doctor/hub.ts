// For a gateway at a leaf node: checks whether the hub responds, and whether the leaf's registry is
// the mirror of the hub's that gateway/projects/registry/bucket.ts creates. Changes nothing.

import type { StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isFilled, isMirrorOf } from "../../gateway/projects/registry/bucket.ts";
import { managerOf, streamInfoOf } from "../../platform/nats/api.ts";
import { checkOf, type Finding } from "./finding.ts";

/** The stream of the registry at a leaf. */
export interface Mirror {
  readonly hubDomain: string;
  /** The name of the registry's stream, which is the same at the hub and at the leaf. */
  readonly name: string;
  /** The description of the leaf's stream; undefined if the stream does not exist. */
  readonly info: StreamInfo | undefined;
}

/**
 * Returns the reason why a gateway does not accept the mirror, or not yet. Returns undefined if the
 * gateway accepts it, or if the mirror does not exist.
 */
export function mirrorFault({ hubDomain, name, info }: Mirror): Finding | undefined {
  const check = checkOf("registry");
  if (info === undefined) return undefined;
  if (!isMirrorOf(info.config, hubDomain)) {
    const found = `${name} is not a mirror of the one in domain ${hubDomain}: the gateway waits for the mirror forever`;
    const fix = `check its content (\`penstock project list\`, without PENSTOCK_HUB_DOMAIN), then \`nats stream rm ${name}\` here: the gateway creates the mirror`;
    return check.fail(found, fix);
  }
  if (isFilled(info.config)) return undefined;
  const found = `${name} has not copied everything from the hub yet: the gateway does not listen until then`;
  return check.warn(
    found,
    "start the gateway, and check that the hub responds; the log states what the gateway waits for",
  );
}

/** Checks the hub. Never rejects: a hub that does not respond is a finding. */
export async function checkHub(
  connection: NatsConnection,
  mirror: Mirror,
  timeoutMs: number,
): Promise<Finding> {
  const check = checkOf("hub");
  const { hubDomain, name, info } = mirror;
  try {
    const hub = await managerOf(connection, { domain: hubDomain, timeoutMs });
    const there = await streamInfoOf(hub, name);
    if (there === undefined) {
      const found = `domain ${hubDomain} responds, but has no registry that leaf nodes can mirror`;
      return check.warn(found, "run `penstock gather` at the hub: it creates the registry");
    }
    const [here, atHub] = [info?.state.last_seq ?? 0, there.state.last_seq];
    if (info !== undefined && isMirrorOf(info.config, hubDomain) && here > atHub) {
      const found = `${name} is at ${here} here and at ${atHub} in domain ${hubDomain}, where it was created again: the mirror copies nothing`;
      return check.warn(
        found,
        `\`nats stream rm ${name}\` here, and start the gateway again: it creates the mirror`,
      );
    }
    return check.ok(`domain ${hubDomain} responds`);
  } catch (error) {
    const waits =
      info !== undefined && isFilled(info.config) ? "" : ", and a gateway here waits for it";
    const found = `domain ${hubDomain} does not respond${waits}: ${(error as Error).message}`;
    const fix =
      "start the hub's nats-server, or correct `leafnodes` in leaf.conf or PENSTOCK_HUB_DOMAIN (`domain` in hub.conf)";
    return check.warn(found, fix);
  }
}
