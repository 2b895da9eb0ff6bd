// All nodes are killed and return without a connection between them. nats-server 2.15 then answers
// with fewer messages than were acknowledged. A valid key may get 503, but never 401.

import { liveStream, networkOf, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

const leaderlessMs = 13_000;

export const clusterLeaderlessSpell: Scenario = {
  name: "cluster-leaderless-spell",
  title: "cluster of three: all nodes are killed, and come back without a leader for a while",
  topology: "networked",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: leaderlessMs, full: 30_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes, network } = networkOf(context);
    await Promise.all(nodes.map((node) => node.kill()));
    for (const node of nodes.keys()) {
      for (const other of nodes.keys()) if (node < other) network.cut(node, other, "reset");
    }
    for (const node of nodes) await node.restart();
    await context.hold(context.faultMs);
    network.heal();
    await recovered(context, `a leader of ${liveStream} again`);
    await whole(context);
  },
};
