// All nodes are killed while streams of one replica get three replicas. With nats-server 2.10, an
// empty new replica may become the leader.

import { clusterOf, recovered, whole } from "../cluster-watch.ts";
import { randomFrom } from "../random.ts";
import { grow } from "../replicas.ts";
import type { Scenario } from "../scenario.ts";

const growthMsMax = 1_500;

export const clusterKilledWhileGrowing: Scenario = {
  name: "cluster-killed-while-growing",
  title:
    "cluster of three: streams grow from one replica to three, and all nodes are killed meanwhile",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "1" },
  faultMs: { short: 500, full: 20_000 },
  mayRefuse: true,
  mustRecover: true,
  knownLoss: { before: "2.12.0", source: "nats-server 7038" },
  async run(context) {
    const cluster = clusterOf(context);
    await context.hold(context.faultMs);
    await grow(cluster);
    await context.hold(Math.round(randomFrom(context.seed)() * growthMsMax));
    await Promise.all(cluster.nodes.map((node) => node.kill()));
    await Promise.all(cluster.nodes.map((node) => node.restart()));
    await recovered(context, "all nodes back");
    await grow(cluster);
    await whole(context);
  },
};
