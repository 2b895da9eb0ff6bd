// The network of a cluster as TCP proxies, between each two nodes, and between the gateway and each
// node. A cut holds back bytes.

import { type Cut, type End, here, type NetworkOfNodes } from "./cluster-network.ts";
import type { TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

interface Way {
  readonly from: End;
  readonly to: number;
  readonly proxy: TcpProxy;
}

/**
 * An address without a listener. Each node gets a different address, because nats-server reports
 * equal addresses as an error.
 */
const nowhere = (to: number): string => `nats://127.0.0.1:${to + 1}`;

export async function createNetworkOfProxies(
  routePorts: readonly number[],
): Promise<NetworkOfNodes> {
  const ways: Way[] = [];
  for (const [to, port] of routePorts.entries()) {
    for (let from = to + 1; from < routePorts.length; from++) {
      ways.push({ from, to, proxy: await startTcpProxy(port, { isRoute: true }) });
    }
  }
  const silent = new Set<Way>();
  const ends: readonly End[] = [...routePorts.keys(), "gateway"];

  function between(one: End, other: End): Way | undefined {
    return ways.find(
      ({ from, to }) => (from === one && to === other) || (from === other && to === one),
    );
  }

  function cut(from: End, to: End, how: Cut): void {
    const way = between(from, to);
    if (way === undefined) return;
    if (how !== "reset") silent.add(way);
    if (how === "silent") way.proxy.stall(true);
    else if (how === "reset") way.proxy.cut();
    else way.proxy.stallOneWay(way.from === from ? "toServer" : "toClient");
  }

  return {
    cut,
    isolate(within, how) {
      for (const one of within)
        for (const other of ends) if (!within.includes(other)) cut(one, other, how);
    },
    slow(from, tos, { delayMs, bytesPerSecond }) {
      for (const to of tos) between(from, to)?.proxy.slow(delayMs, bytesPerSecond);
      return `${delayMs} ms, ${bytesPerSecond} bytes/s`;
    },
    heal({ lost = false } = {}) {
      for (const way of ways) {
        if (lost && silent.has(way)) way.proxy.reset();
        way.proxy.slow(0, 0);
        way.proxy.stall(false);
        way.proxy.open();
      }
      silent.clear();
      return 0;
    },
    placeOf: () => here,
    routeUrl: (from, to) =>
      from < to ? nowhere(to) : (between(from, to)?.proxy.url ?? nowhere(to)),
    async openToGateway(ports) {
      const urls: string[] = [];
      for (const [to, port] of ports.entries()) {
        const proxy = await startTcpProxy(port);
        ways.push({ from: "gateway", to, proxy });
        urls.push(proxy.url);
      }
      return urls;
    },
    close: async () => void (await Promise.all(ways.map(({ proxy }) => proxy.close()))),
  };
}
