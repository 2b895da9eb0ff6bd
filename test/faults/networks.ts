// Creates the network of a cluster, of the requested kind.

import type { NetworkKind, NetworkOfNodes } from "./cluster-network.ts";
import { createNetworkOfNamespaces } from "./network-of-namespaces.ts";
import { createNetworkOfProxies } from "./network-of-proxies.ts";

/**
 * `routePorts` are the ports on which the nodes will listen for one another. Rejects if it cannot
 * be created.
 */
export async function createClusterNetwork(
  kind: NetworkKind,
  routePorts: readonly number[],
): Promise<NetworkOfNodes> {
  return kind === "namespaces"
    ? createNetworkOfNamespaces(routePorts)
    : await createNetworkOfProxies(routePorts);
}
