// A sequence of faults of a cluster, which never affect two nodes at the same time. The same seed
// gives the same sequence.

import { clusterOf, historicalStream, liveStream, recovered, whole } from "../cluster-watch.ts";
import { type Random, randomFrom } from "../random.ts";
import type { Scenario, ScenarioContext } from "../scenario.ts";

export const clusterTroubleWithoutEnd: Scenario = {
  name: "cluster-trouble-without-end",
  title: "cluster of three: kills, freezes, stops and step-downs at random, one after another",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3", PENSTOCK_ACK_TIMEOUT_MS: "700" },
  faultMs: { short: 8_000, full: 120_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const random = randomFrom(context.seed);
    const endMs = performance.now() + context.faultMs;
    while (performance.now() < endMs) {
      await trouble(context, random);
      await recovered(context, "after it");
    }
    await whole(context);
  },
};

async function trouble(context: ScenarioContext, random: Random): Promise<void> {
  const cluster = clusterOf(context);
  const stream = random() < 0.5 ? liveStream : historicalStream;
  const leader = await cluster.leaderOf(stream);
  const node =
    random() < 0.7 ? leader : cluster.nodes[Math.floor(random() * cluster.nodes.length)]!;
  const which = `node ${cluster.nodes.indexOf(node)}, ${node === leader ? "leader" : "perhaps a follower"} of ${stream}`;
  const faultMs = Math.round(10 ** (random() * 3) * 8);
  switch (Math.floor(random() * 5)) {
    case 0:
      context.note(`${which}: killed for ${faultMs} ms`);
      await node.kill();
      await context.hold(faultMs);
      await node.restart();
      // No other node may fail before this node has caught up.
      await whole(context);
      break;
    case 1:
    case 2:
      context.note(`${which}: frozen for ${faultMs} ms`);
      node.freeze();
      await context.hold(faultMs);
      node.thaw();
      break;
    case 3:
      context.note(`${which}: stopped for ${faultMs} ms`);
      await node.stop();
      await context.hold(faultMs);
      await node.restart();
      await whole(context);
      break;
    default:
      context.note(`${stream}: step down`);
      await cluster.stepDown(stream);
  }
}
