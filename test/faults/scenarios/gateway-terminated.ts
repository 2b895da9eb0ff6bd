// The gateway is stopped under load. It answers all accepted requests, then ends. While nats-server
// is frozen, accepted requests first wait for their acknowledgements.

import type { Scenario } from "../scenario.ts";

const terminated = {
  topology: "single",
  mayRefuse: true,
  mustRecover: false,
  mayLoseConnections: true,
  // A request that arrives while the gateway closes its connections may get no answer.
  answersLostMax: 3,
} as const;

export const gatewayTerminated: Scenario = {
  ...terminated,
  name: "gateway-terminated",
  title: "the gateway is stopped (SIGTERM) and restarted",
  faultMs: { short: 100, full: 1_000 },
  async run({ gateway, faultMs, hold, acknowledged }) {
    for (let time = 0; time < 2; time++) {
      await gateway.kill("SIGTERM");
      await hold(faultMs);
      await gateway.restart();
      // All clients must be connected at the next stop. A client that is still connecting gets no
      // answer.
      await acknowledged(3_000);
    }
  },
};

export const gatewayTerminatedWhileFrozen: Scenario = {
  ...terminated,
  name: "gateway-terminated-while-frozen",
  title: "the gateway is stopped (SIGTERM) while nats-server is frozen",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "500" },
  faultMs: { short: 700, full: 3_000 },
  async run({ store, gateway, faultMs, hold }) {
    const [node] = store.nodes;
    node!.freeze();
    await hold(faultMs / 2);
    const ended = gateway.kill("SIGTERM");
    await hold(faultMs);
    node!.thaw();
    await ended;
    await gateway.restart();
  },
};
