import type { Scenario } from "../scenario.ts";

const deaths = 2;
const restartMsMax = 20_000;
const pollMs = 10;

export const embeddedNatsKilled: Scenario = {
  name: "embedded-nats-killed",
  title: "the embedded nats-server is killed (SIGKILL); the gateway restarts it",
  topology: "embedded",
  faultMs: { short: 0, full: 1_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, acknowledged }) {
    const [node] = store.nodes;
    for (let death = 0; death < deaths; death++) {
      const { pid } = node!;
      await node!.kill();
      for (
        const deadline = performance.now() + restartMsMax;
        node!.pid === pid;
        await hold(pollMs)
      ) {
        if (performance.now() > deadline)
          throw new Error("kill the embedded nats-server: it is not started again");
      }
      await acknowledged(50);
      await hold(faultMs);
    }
  },
};
