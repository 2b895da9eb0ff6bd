import { startNatsServer } from "../kit/nats-server.ts";
import type { Store, TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

interface ProxiedStoreOptions {
  readonly binary?: string | undefined;
  readonly syncInterval?: string | undefined;
}

export interface ProxiedStore extends Store {
  readonly proxy: TcpProxy;
}

export async function createProxiedStore({
  binary,
  syncInterval,
}: ProxiedStoreOptions = {}): Promise<ProxiedStore> {
  const node = await startNatsServer({
    ...(binary === undefined ? {} : { binary }),
    ...(syncInterval === undefined ? {} : { syncInterval }),
    // Space for streams with the default limits. A server without a cluster announces no other
    // addresses, so no client bypasses the proxy.
    maxFileStore: 64 * 1_073_741_824,
  });
  const proxy = await startTcpProxy(node.port);
  return {
    gatewayUrl: proxy.url,
    readerUrl: node.url,
    replicas: 1,
    nodes: [node],
    proxy,
    leaderOf: async () => node,
    async remove() {
      await proxy.close();
      await node.remove();
    },
  };
}
