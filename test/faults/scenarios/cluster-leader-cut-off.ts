// The leader is cut off from the other nodes, which elect a new leader. The gateway can connect to
// all three nodes. It must switch from its server, which no longer serves any stream.

import { besideLeader, liveStream, networkOf, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

export const clusterLeaderCutOff: Scenario = {
  name: "cluster-leader-cut-off",
  title:
    "cluster of three: the leader that the gateway is connected to is cut off from the other two",
  topology: "networked",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "700" },
  faultMs: { short: 1_000, full: 20_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes, network, leaderOf } = networkOf(context);
    const leader = await besideLeader(context);
    network.heal();
    const others = nodes.filter((node) => node !== leader);
    for (const other of others) network.cut(nodes.indexOf(leader), nodes.indexOf(other), "silent");
    const startedMs = performance.now();
    await leaderOf(liveStream, others);
    const leaderMs = performance.now() - startedMs;
    // The old leader cannot commit events, so every later acknowledgement comes from the new
    // leader.
    await context.hold(context.faultMs);
    await context.acknowledged(100);
    context.note(
      `another leader after ${Math.round(leaderMs)} ms, events acknowledged by ${Math.round(performance.now() - startedMs)} ms`,
    );
    const lateMs = network.heal({ lost: true });
    await recovered(context, "cut healed", lateMs);
    await whole(context);
  },
};
