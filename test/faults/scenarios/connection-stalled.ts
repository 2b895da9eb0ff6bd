import { proxyOf } from "../proxied.ts";
import type { Scenario } from "../scenario.ts";

export const connectionStalled: Scenario = {
  name: "connection-stalled",
  title: "network: nothing passes, and the connections stay open",
  topology: "proxied",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "500" },
  faultMs: { short: 1_500, full: 12_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const proxy = proxyOf(context);
    proxy.stall(true);
    await context.hold(context.faultMs);
    proxy.stall(false);
  },
};
