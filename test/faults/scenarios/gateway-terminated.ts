// The gateway is told to stop under load, as in every roll-out: it answers what it has taken, then
// ends by itself.

import type { Scenario } from "../scenario.ts";

export const gatewayTerminated: Scenario = {
  name: "gateway-terminated",
  title: "the gateway is stopped (SIGTERM) and restarted",
  topology: "single",
  faultMs: { short: 100, full: 1_000 },
  mayRefuse: true,
  mustRecover: false,
  mayLoseConnections: true,
  // A request that arrives while the connections are being closed may go without.
  answersLostMax: 3,
  async run({ gateway, faultMs, hold, acknowledged }) {
    for (let time = 0; time < 2; time++) {
      // Rejects when it does not end with 0.
      await gateway.kill("SIGTERM");
      await hold(faultMs);
      await gateway.restart();
      // More than the first to be back get: who is still connecting when the gateway stops
      // listening has not been taken.
      await acknowledged(3_000);
    }
  },
};
