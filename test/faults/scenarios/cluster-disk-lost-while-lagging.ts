// A follower is cut off. Another node acknowledges events, loses its disk, and is then connected
// only to the follower. nats-server before 2.12 lets them elect a leader without the events (its
// pull request 7038), which the gateway must report.

import { setTimeout as delay } from "node:timers/promises";
import { liveStream, networkOf, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

const electionMs = 12_000;

export const clusterDiskLostWhileLagging: Scenario = {
  name: "cluster-disk-lost-while-lagging",
  title:
    "cluster of three: a node loses its disk while another lags, and the third is cut off when these two reconnect",
  topology: "networked",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 500, full: 5_000 },
  mayRefuse: true,
  mustRecover: true,
  knownLoss: { before: "2.12.0", source: "nats-server 7038" },
  async run(context) {
    const cluster = networkOf(context);
    const { nodes, network, leaderOf } = cluster;
    const holder = await leaderOf(liveStream);
    const [lagging, emptied] = nodes.filter((node) => node !== holder);
    if (lagging === undefined || emptied === undefined)
      throw new Error("lose a disk: there are no three nodes");
    network.isolate([nodes.indexOf(lagging)], "silent");
    await context.acknowledged(100);
    await context.hold(context.faultMs);
    await holder.kill();
    await cluster.loseDisk(emptied);
    network.heal({ lost: true });
    await emptied.restart();
    const elected = leaderOf(liveStream, [lagging, emptied]).catch(() => undefined);
    const soon = await Promise.race([elected, delay(electionMs, undefined)]);
    context.note(soon === undefined ? "the two elected no leader" : "the two elected a leader");
    await holder.restart();
    await recovered(context, "the last holder is back");
    await whole(context);
  },
};
