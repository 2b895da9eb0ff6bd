// What is between the nodes of a cluster, and between the gateway and each of them: a proxy for each pair, so that any two can be cut
// off from each other, both ways or one, without a right that only root has. The nodes know no other way to one another. Must not
// decide what is cut: the scenario does.

import type { TcpProxy } from "./scenario.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/** A node by its number, or the gateway. */
export type End = number | "gateway";

/**
 * - `silent`: nothing passes and no connection ends; what was said arrives when the cut is healed.
 * - `reset`: connections end, and none can be opened.
 * - `one-way`: nothing passes from the first to the second.
 */
export type Cut = "silent" | "reset" | "one-way";

export interface ClusterNetwork {
  cut(from: End, to: End, how: Cut): void;
  /** Between each of these and every other. */
  isolate(ends: readonly End[], how: Cut): void;
  /** Bytes pass this late, and no faster than so many a second each way. */
  slow(from: End, to: End, speed: { readonly delayMs: number; readonly bytesPerSecond: number }): void;
  /** Everything passes again. `lost`: connections end, with what they held, as when a middlebox has forgotten them. */
  heal(options?: { readonly lost?: boolean }): void;
  close(): Promise<void>;
}

/** A node's way to another: where it dials, and between whom. */
interface Way {
  readonly from: End;
  readonly to: number;
  readonly proxy: TcpProxy;
}

export interface NetworkOfNodes extends ClusterNetwork {
  /** Where a node dials another. The second of two nodes dials the first; the first is given an address that nobody answers. */
  routeUrl(from: number, to: number): string;
  /** Where the gateway finds the nodes; theirs are known only when they have started. */
  openToGateway(ports: readonly number[]): Promise<readonly string[]>;
}

/** Nobody listens there: one of the first ports of loopback. Each is another, or nats-server takes them for a slip. */
const nowhere = (to: number): string => `nats://127.0.0.1:${to + 1}`;

/** `routePorts` are what the nodes will listen on for one another. */
export async function createClusterNetwork(routePorts: readonly number[]): Promise<NetworkOfNodes> {
  const ways: Way[] = [];
  for (const [to, port] of routePorts.entries()) {
    for (let from = to + 1; from < routePorts.length; from++) {
      ways.push({ from, to, proxy: await startTcpProxy(port, { isRoute: true }) });
    }
  }
  const silent = new Set<Way>();
  const ends: readonly End[] = [...routePorts.keys(), "gateway"];

  function between(one: End, other: End): Way | undefined {
    return ways.find(({ from, to }) => (from === one && to === other) || (from === other && to === one));
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
      for (const one of within) for (const other of ends) if (!within.includes(other)) cut(one, other, how);
    },
    slow(from, to, { delayMs, bytesPerSecond }) {
      between(from, to)?.proxy.slow(delayMs, bytesPerSecond);
    },
    heal({ lost = false } = {}) {
      for (const way of ways) {
        if (lost && silent.has(way)) way.proxy.reset();
        way.proxy.slow(0, 0);
        way.proxy.stall(false);
        way.proxy.open();
      }
      silent.clear();
    },
    routeUrl: (from, to) => (from < to ? nowhere(to) : (between(from, to)?.proxy.url ?? nowhere(to))),
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
