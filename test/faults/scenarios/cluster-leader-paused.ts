// The leader is frozen for longer than the ack timeout but for a shorter time than an election, so
// it receives every repeated frame twice.

import { liveStream, recovered } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterLeaderPaused: Scenario = {
  name: "cluster-leader-paused",
  title:
    "cluster of three: the stream's leader is frozen for longer than the ack timeout, and shorter than an election takes",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "500" },
  faultMs: { short: 2_000, full: 3_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const leader = await context.store.leaderOf(liveStream);
    leader.freeze();
    await context.hold(context.faultMs);
    leader.thaw();
    await recovered(context, "leader paused");
  },
};
