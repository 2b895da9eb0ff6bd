// Delays bytes between the gateway and a store by TCP proxies. The ledger reads the nodes directly.

import type { Store, TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/**
 * The delay applies in each direction. `remove` also stops the proxies. Rejects if a proxy does not
 * start; the caller then keeps the store.
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
