// The leader and the gateway are cut off from the other nodes. The leader accepts frames but cannot
// commit them, so they must not be acknowledged.

import type { End } from "../cluster-network.ts";
import { besideLeader, liveStream, networkOf, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

const fullMs = 20_000;

export const clusterLeaderCutWithGateway: Scenario = {
  name: "cluster-leader-cut-with-gateway",
  title: "cluster of three: the leader and the gateway are cut off from the other two",
  topology: "networked",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "700" },
  faultMs: { short: 3_000, full: fullMs },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes, network, leaderOf } = networkOf(context);
    const cuts = ["first cut healed", "second cut healed"];
    for (const cut of context.faultMs < fullMs ? cuts.slice(1) : cuts) {
      const leader = await besideLeader(context);
      const side: End[] = [nodes.indexOf(leader), "gateway"];
      network.isolate(side, "silent");
      const others = nodes.filter((node) => node !== leader);
      await Promise.all([leaderOf(liveStream, others), context.hold(context.faultMs)]);
      const lateMs = network.heal({ lost: cut.startsWith("second") });
      await recovered(context, cut, lateMs);
      await whole(context);
    }
  },
};
