// Adds distance between the gateway and a store: in front of each address of the store is a TCP
// proxy that delays bytes. Only with distance can a reply still be on its way when a deadline
// passes. The nodes stay close to one another, and the ledger reads them directly.

import type { Store, TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/**
 * The store as seen with a delay of `delayMs` each way. Removing it also stops the proxies. Rejects
 * if a proxy does not start; the caller then keeps the store.
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
