// The network between the stream's leader and the other two goes silent while the gateway is on the
// leader's side, twice. The leader accepts frames for some seconds and can commit none of them; the
// others elect another, and what the first had not committed is truncated when they reconnect. So
// none of it may be acknowledged, whatever the leader answers.

import type { End } from "../cluster-network.ts";
import { besideLeader, liveStream, networkOf, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterLeaderCutWithGateway: Scenario = {
  name: "cluster-leader-cut-with-gateway",
  title: "cluster of three: the leader and the gateway are cut off from the other two, twice",
  topology: "networked",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "700" },
  faultMs: { short: 3_000, full: 20_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes, network, leaderOf } = networkOf(context);
    for (const cut of ["first cut healed", "second cut healed"]) {
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
