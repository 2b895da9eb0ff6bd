import type { Scenario } from "../scenario.ts";

export const everythingKilled: Scenario = {
  name: "everything-killed",
  title: "gateway and nats-server are killed together (SIGKILL) and restarted",
  topology: "single",
  faultMs: { short: 100, full: 1_000 },
  mayRefuse: true,
  mustRecover: false,
  mayLoseConnections: true,
  async run({ store, gateway, faultMs, hold }) {
    const [node] = store.nodes;
    await Promise.all([gateway.kill("SIGKILL"), node!.kill()]);
    await hold(faultMs);
    await node!.restart();
    await gateway.restart();
  },
};
