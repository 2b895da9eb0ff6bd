// A node that does not lead the live stream is killed under load. The other two nodes are a quorum,
// so no request waits for an election.

import { historicalStream, liveStream, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterFollowerKilled: Scenario = {
  name: "cluster-follower-killed",
  title: "cluster of three: a follower is killed, and restarted later",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 500, full: 5_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { store } = context;
    const leaders = await Promise.all([
      store.leaderOf(liveStream),
      store.leaderOf(historicalStream),
    ]);
    const follower = store.nodes.find((node) => !leaders.includes(node));
    if (follower === undefined) throw new Error("find a follower: every node leads a stream");
    await follower.kill();
    await recovered(context, "follower killed");
    await context.hold(context.faultMs);
    await follower.restart();
    await whole(context);
  },
};
