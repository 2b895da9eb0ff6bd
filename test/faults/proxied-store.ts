// One nats-server, which the gateway reaches through a proxy only, and the ledger without it.

import { startNatsServer } from "../kit/nats-server.ts";
import type { Store, TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

interface ProxiedStoreOptions {
  /** Default: what the tests run against. */
  readonly binary?: string | undefined;
  /** `always` (the default), or a duration. */
  readonly syncInterval?: string | undefined;
}

export interface ProxiedStore extends Store {
  readonly proxy: TcpProxy;
}

/** The caller calls remove() in the end. */
export async function createProxiedStore({
  binary,
  syncInterval,
}: ProxiedStoreOptions = {}): Promise<ProxiedStore> {
  const node = await startNatsServer({
    ...(binary === undefined ? {} : { binary }),
    ...(syncInterval === undefined ? {} : { syncInterval }),
    // Room for streams with the default limits. A server without a cluster tells its clients of no
    // other addresses, so that none finds a way around the proxy.
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
