// Both followers are frozen. Then the leader is killed and the followers resume. Frames that the
// old leader accepted during the freeze are truncated.

import { besideLeader, liveStream, networkOf, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterFollowersFrozenLeaderKilled: Scenario = {
  name: "cluster-followers-frozen-leader-killed",
  title:
    "cluster of three: both followers are frozen, the leader killed, the followers thawed, the leader restarted",
  topology: "networked",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "700" },
  faultMs: { short: 3_000, full: 8_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes, network, leaderOf } = networkOf(context);
    const leader = await besideLeader(context);
    const followers = nodes.filter((node) => node !== leader);
    network.isolate([nodes.indexOf(leader), "gateway"], "silent");
    for (const follower of followers) follower.freeze();
    await context.hold(context.faultMs);
    await leader.kill();
    network.heal({ lost: true });
    for (const follower of followers) follower.thaw();
    await leaderOf(liveStream, followers);
    await leader.restart();
    await recovered(context, "followers thawed, leader back");
    await whole(context);
  },
};
