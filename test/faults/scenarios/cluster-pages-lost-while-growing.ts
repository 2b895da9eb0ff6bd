// All nodes lose power while streams of one replica get three replicas. nats-server then loses
// acknowledged events, and the gateway must report the loss.

import { clusterOf, recovered, whole } from "../cluster-watch.ts";
import { cutPowerOf } from "../page-cache.ts";
import { randomFrom } from "../random.ts";
import { grow } from "../replicas.ts";
import type { Scenario } from "../scenario.ts";

const growthMsMax = 1_500;

export const clusterPagesLostWhileGrowing: Scenario = {
  name: "cluster-pages-lost-while-growing",
  title:
    "cluster of three: streams grow from one replica to three, and all nodes lose power meanwhile",
  topology: "cluster",
  onDisk: true,
  env: { PENSTOCK_REPLICAS: "1" },
  faultMs: { short: 500, full: 20_000 },
  mayRefuse: true,
  mustRecover: false,
  knownLoss: { source: "nats-server 8425" },
  async run(context) {
    const cluster = clusterOf(context);
    await context.hold(context.faultMs);
    await grow(cluster);
    await context.hold(Math.round(randomFrom(context.seed)() * growthMsMax));
    context.note(await cutPowerOf(cluster.nodes));
    await Promise.all(cluster.nodes.map((node) => node.restart()));
    const back = await recovered(context, "power back").catch((error: Error) => error);
    if (back instanceof Error) return context.note(back.message);
    await grow(cluster);
    await whole(context);
  },
};
