// nats-server is killed soon after each start, so frames in flight are sent to several of its
// processes.

import type { Scenario } from "../scenario.ts";

const lives = 5;

export const natsKilledAgainAndAgain: Scenario = {
  name: "nats-killed-again-and-again",
  title: `nats-server is killed ${lives} times, each time after a few acknowledgements`,
  topology: "single",
  faultMs: { short: 0, full: 300 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, acknowledged }) {
    const [node] = store.nodes;
    for (let life = 0; life < lives; life++) {
      await node!.kill();
      await hold(faultMs);
      await node!.restart();
      await acknowledged(20);
    }
  },
};
