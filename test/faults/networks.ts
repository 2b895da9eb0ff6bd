import type { NetworkKind, NetworkOfNodes } from "./cluster-network.ts";
import { createNetworkOfNamespaces } from "./network-of-namespaces.ts";
import { createNetworkOfProxies } from "./network-of-proxies.ts";

export async function createClusterNetwork(
  kind: NetworkKind,
  routePorts: readonly number[],
): Promise<NetworkOfNodes> {
  return kind === "namespaces"
    ? createNetworkOfNamespaces(routePorts)
    : await createNetworkOfProxies(routePorts);
}
