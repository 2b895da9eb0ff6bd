// Makes the network of a cluster, of the kind that is asked for.

import type { NetworkKind, NetworkOfNodes } from "./cluster-network.ts";
import { createNetworkOfNamespaces } from "./network-of-namespaces.ts";
import { createNetworkOfProxies } from "./network-of-proxies.ts";

/**
 * `routePorts` are what the nodes will listen on for one another. Rejects where it cannot be made.
 */
export async function createClusterNetwork(
  kind: NetworkKind,
  routePorts: readonly number[],
): Promise<NetworkOfNodes> {
  return kind === "namespaces"
    ? createNetworkOfNamespaces(routePorts)
    : await createNetworkOfProxies(routePorts);
}
