// Two of three nodes are killed under load. The gateway must acknowledge no event until they
// return.

import { liveStream, recovered } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterQuorumLost: Scenario = {
  name: "cluster-quorum-lost",
  title: "cluster of three: two nodes are killed, so that there is no quorum, and restarted",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 500, full: 12_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const leader = await context.store.leaderOf(liveStream);
    const [first, survivor] = context.store.nodes.filter((node) => node !== leader);
    if (first === undefined || survivor === undefined)
      throw new Error("lose the quorum: there are no three nodes");
    await Promise.all([leader.kill(), first.kill()]);
    await context.hold(context.faultMs);
    await Promise.all([leader.restart(), first.restart()]);
    await recovered(context, "quorum lost and back");
  },
};
