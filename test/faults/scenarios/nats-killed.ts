import type { Scenario } from "../scenario.ts";

export const natsKilled: Scenario = {
  name: "nats-killed",
  title: "nats-server is killed (SIGKILL) and restarted",
  topology: "single",
  faultMs: { short: 200, full: 2_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold }) {
    const [node] = store.nodes;
    await node!.kill();
    await hold(faultMs);
    await node!.restart();
  },
};
