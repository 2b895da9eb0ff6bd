// The leader of the live stream is killed under load. The other two nodes elect a new leader, and
// the killed node returns as a follower.

import { liveStream, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterLeaderKilled: Scenario = {
  name: "cluster-leader-killed",
  title: "cluster of three: the stream's leader is killed, and restarted later",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 200, full: 5_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const leader = await context.store.leaderOf(liveStream);
    await leader.kill();
    await recovered(context, "leader killed");
    await context.hold(context.faultMs);
    await leader.restart();
    await whole(context);
  },
};
