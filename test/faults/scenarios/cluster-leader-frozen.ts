// The leader is frozen for longer than the ack timeout, and is a follower when it resumes. Frames
// that the gateway sent again to the new leader must be stored once and in order.

import { liveStream, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterLeaderFrozen: Scenario = {
  name: "cluster-leader-frozen",
  title:
    "cluster of three: the stream's leader is frozen for longer than the ack timeout, then thawed",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "1000" },
  faultMs: { short: 500, full: 5_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { store, faultMs } = context;
    const leader = await store.leaderOf(liveStream);
    leader.freeze();
    await recovered(context, "leader frozen");
    await context.hold(faultMs);
    leader.thaw();
    await whole(context);
    await recovered(context, "leader thawed");
  },
};
