// The gateway is told to stop while nats-server stands still: what it took waits for its
// acknowledgements, then it ends by itself.

import type { Scenario } from "../scenario.ts";

export const gatewayTerminatedWhileFrozen: Scenario = {
  name: "gateway-terminated-while-frozen",
  title: "the gateway is stopped (SIGTERM) while nats-server stands still",
  topology: "single",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "500" },
  faultMs: { short: 700, full: 3_000 },
  mayRefuse: true,
  mustRecover: false,
  mayLoseConnections: true,
  // A request that arrives while the connections are being closed may go without.
  answersLostMax: 3,
  async run({ store, gateway, faultMs, hold }) {
    const [node] = store.nodes;
    node!.freeze();
    await hold(faultMs / 2);
    // Rejects when it does not end with 0.
    const ended = gateway.kill("SIGTERM");
    await hold(faultMs);
    node!.thaw();
    await ended;
    await gateway.restart();
  },
};
