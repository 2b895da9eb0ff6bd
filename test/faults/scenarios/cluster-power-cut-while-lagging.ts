// A follower is frozen. Another node acknowledges events and loses power. Then only these two nodes
// are up, and the node with the events must become the leader (Jepsen's finding in nats-server
// 7567).

import { setTimeout as delay } from "node:timers/promises";
import { clusterOf, liveStream, recovered, whole } from "../cluster-watch.ts";
import { cutPowerOf } from "../page-cache.ts";
import type { Scenario } from "../scenario.ts";

const electionMs = 12_000;

export const clusterPowerCutWhileLagging: Scenario = {
  name: "cluster-power-cut-while-lagging",
  title:
    "cluster of three: a node loses power while another is frozen, and the third is frozen when these two reconnect",
  topology: "cluster",
  onDisk: true,
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 500, full: 5_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const { nodes, leaderOf } = clusterOf(context);
    const holder = await leaderOf(liveStream);
    const [lagging, cut] = nodes.filter((node) => node !== holder);
    if (lagging === undefined || cut === undefined)
      throw new Error("cut the power: there are no three nodes");
    lagging.freeze();
    await context.acknowledged(100);
    await context.hold(context.faultMs);
    context.note(await cutPowerOf([cut]));
    holder.freeze();
    lagging.thaw();
    await cut.restart();
    const elected = leaderOf(liveStream, [lagging, cut]).catch(() => undefined);
    const leader = await Promise.race([elected, delay(electionMs, undefined)]);
    context.note(leader === undefined ? "the two elected no leader" : "the two elected a leader");
    holder.thaw();
    await recovered(context, "the last holder goes on");
    await whole(context);
  },
};
