import type { Scenario } from "../scenario.ts";

export const gatewayKilled: Scenario = {
  name: "gateway-killed",
  title: "the gateway is killed (SIGKILL) and restarted",
  topology: "single",
  faultMs: { short: 100, full: 1_000 },
  mayRefuse: true,
  mustRecover: false,
  mayLoseConnections: true,
  async run({ gateway, faultMs, hold, acknowledged }) {
    for (let time = 0; time < 2; time++) {
      await gateway.kill("SIGKILL");
      await hold(faultMs);
      await gateway.restart();
      await acknowledged(50);
    }
  },
};
