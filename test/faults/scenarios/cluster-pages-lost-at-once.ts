// All three nodes lose power at the same moment. Since 2.15 a replicated stream syncs only its Raft
// log (nats-server 8447). Every acknowledged event must be stored.

import { clusterOf, recovered, whole } from "../cluster-watch.ts";
import { cutPowerOf } from "../page-cache.ts";
import type { Scenario } from "../scenario.ts";

/** In the full form: longer than nats-server waits before it syncs the remaining data. */
const syncedMs = 150_000;

export const clusterPagesLostAtOnce: Scenario = {
  name: "cluster-pages-lost-at-once",
  title:
    "cluster of three: all nodes lose power at the same moment, with all data that is not on their disks",
  topology: "cluster",
  onDisk: true,
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 500, full: syncedMs },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes } = clusterOf(context);
    const cuts =
      context.faultMs < syncedMs ? ["power cut"] : ["first power cut", "second power cut"];
    for (const cut of cuts) {
      if (cut.startsWith("second")) await context.hold(context.faultMs);
      context.note(`${cut}: ${await cutPowerOf(nodes)}`);
      await Promise.all(nodes.map((node) => node.restart()));
      await recovered(context, cut);
      await whole(context);
    }
  },
};
