// Puts distance between the gateway and a store: before each address of the store stands a TCP
// proxy that passes bytes late. Only with distance is a reply still on its way when a deadline
// falls. The nodes stay next door to one another, and the ledger reads them directly.

import type { Store, TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/**
 * The store as seen from `delayMs` away, each way. Whoever takes it down takes the proxies down
 * with it. Rejects when a proxy does not start; the store stays the caller's then.
 */
export async function farStore<S extends Store>(store: S, delayMs: number): Promise<S> {
  const proxies: TcpProxy[] = [];
  const close = async (): Promise<void> =>
    void (await Promise.all(proxies.map((proxy) => proxy.close())));
  try {
    for (const url of store.gatewayUrl.split(",")) {
      const proxy = await startTcpProxy(Number(new URL(url).port));
      proxies.push(proxy);
      proxy.slow(delayMs, 0);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...store,
    gatewayUrl: proxies.map(({ url }) => url).join(","),
    async remove() {
      await close();
      await store.remove();
    },
  };
}
