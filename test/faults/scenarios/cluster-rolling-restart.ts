// The nodes are stopped and started one after another, as for an upgrade.

import { recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterRollingRestart: Scenario = {
  name: "cluster-rolling-restart",
  title: "cluster of three: all nodes are restarted, one after another",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 100, full: 3_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    for (const node of context.store.nodes) {
      await node.stop();
      await recovered(context, "node stopped");
      await context.hold(context.faultMs);
      await node.restart();
      await whole(context);
    }
  },
};
