// The connection to nats-server is reset under load and refused for a while. The gateway sends
// frames in flight again.

import { proxyOf } from "../proxied.ts";
import type { Scenario } from "../scenario.ts";

export const connectionCut: Scenario = {
  name: "connection-cut",
  title: "network: the connection to nats-server is reset, and refused for a while",
  topology: "proxied",
  faultMs: { short: 1_000, full: 10_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const proxy = proxyOf(context);
    proxy.cut();
    await context.hold(context.faultMs);
    proxy.open();
  },
};
