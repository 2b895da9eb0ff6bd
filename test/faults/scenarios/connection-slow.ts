// The connection to nats-server becomes slow. Events that wait too long are refused, not lost.

import { proxyOf } from "../proxied.ts";
import type { Scenario } from "../scenario.ts";

export const connectionSlow: Scenario = {
  name: "connection-slow",
  title: "network: 200 ms each way and 1 MB/s",
  topology: "proxied",
  faultMs: { short: 3_000, full: 15_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const proxy = proxyOf(context);
    proxy.slow(200, 1_000_000);
    await context.hold(context.faultMs);
    proxy.slow(0, 0);
  },
};
