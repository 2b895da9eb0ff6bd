// A bit flips in a block of one replica, whose node is restarted and becomes the leader (Jepsen's
// finding in nats-server 7549). An older nats-server then returns fewer events than were
// acknowledged.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import { clusterOf, liveStream, recovered, whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";

const stepDownsMax = 8;

export const clusterBlockDamaged: Scenario = {
  name: "cluster-block-damaged",
  title: "cluster of three: a block of one replica is damaged, and its node made the leader",
  topology: "cluster",
  env: { PENSTOCK_REPLICAS: "3" },
  faultMs: { short: 2_000, full: 10_000 },
  mayRefuse: true,
  mustRecover: true,
  // The oldest version for which the tests found no loss.
  knownLoss: { before: "2.15.1", source: "nats-server 7549", isSilent: true },
  async run(context) {
    const cluster = clusterOf(context);
    await context.hold(context.faultMs);
    const leader = await cluster.leaderOf(liveStream);
    const node = cluster.nodes.find((other) => other !== leader)!;
    await node.kill();
    context.note(damage(node));
    await node.restart();
    await recovered(context, "damaged node back");
    await whole(context);
    for (
      let times = 0;
      times < stepDownsMax && (await cluster.leaderOf(liveStream)) !== node;
      times++
    ) {
      await cluster.stepDown(liveStream);
      await recovered(context, "leader stepped down");
    }
    await whole(context);
  },
};

function damage({ storeDir }: TestNatsServer): string {
  const folder = path.join(storeDir, "jetstream", "$G", "streams", liveStream, "msgs");
  const [first] = readdirSync(folder)
    .filter((name) => name.endsWith(".blk"))
    .sort((left, right) => Number.parseInt(left, 10) - Number.parseInt(right, 10));
  if (first === undefined) throw new Error("damage a block: the stream has no block");
  const bytes = readFileSync(path.join(folder, first));
  const at = Math.floor(bytes.length / 2);
  bytes[at] = bytes[at]! ^ 0x20;
  writeFileSync(path.join(folder, first), bytes);
  return `a bit of ${first} changed, at ${at} of ${bytes.length}`;
}
