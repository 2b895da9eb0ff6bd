// The leader steps down three times. No node is lost, so the gateway must only wait for a new
// leader.

import { clusterOf, historicalStream, liveStream, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

const timesMax = 3;

export const clusterLeaderStepsDown: Scenario = {
  name: "cluster-leader-steps-down",
  title: "cluster of three: the leaders of both streams step down, three times",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_REQUEST_TIMEOUT_MS: "25000" },
  faultMs: { short: 300, full: 3_000 },
  mayRefuse: false,
  mustRecover: true,
  async run(context) {
    const cluster = clusterOf(context);
    for (let times = 0; times < timesMax; times++) {
      await Promise.all([cluster.stepDown(liveStream), cluster.stepDown(historicalStream)]);
      await recovered(context, "leader stepped down");
      await context.hold(context.faultMs);
      await whole(context);
    }
  },
};
