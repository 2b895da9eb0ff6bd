// Like nats-killed, with frames of several projects, several partitions, two workers, and a small
// window.

import type { Scenario } from "../scenario.ts";

export const sharedFramesNatsKilled: Scenario = {
  name: "shared-frames-nats-killed",
  title:
    "nats-server is killed; frame scope partition, 3 partitions, 2 workers, a window of 4 frames",
  topology: "single",
  env: {
    PENSTOCK_FRAME_SCOPE: "partition",
    PENSTOCK_PARTITIONS: "3",
    PENSTOCK_WORKERS: "2",
    PENSTOCK_FRAMES_UNACKED_MAX: "4",
  },
  faultMs: { short: 200, full: 2_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, acknowledged }) {
    const [node] = store.nodes;
    for (let time = 0; time < 2; time++) {
      await node!.kill();
      await hold(faultMs);
      await node!.restart();
      await acknowledged(100);
    }
  },
};
