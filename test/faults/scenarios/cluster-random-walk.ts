// Random faults of a cluster and its network, several at a time. The same seed gives the same
// faults, except for the machine's timing.

import { networkOf, recovered, whole } from "../cluster-watch.ts";
import { isOlder } from "../nats-version.ts";
import { type Random, randomFrom } from "../random.ts";
import type { Scenario, ScenarioContext } from "../scenario.ts";
import { diskLost, type Step, type StepKind, stepKinds } from "../walk.ts";

const togetherMax = 3;
const stepsBetweenCalms = 8;
const diskLossChance = 0.5;
const delayMsMax = 50;
const oldestThatBearsMore = "2.12.0";

export const clusterRandomWalk: Scenario = {
  name: "cluster-random-walk",
  title:
    "cluster of three: cuts, freezes, kills, lost disks, step-downs and slow links at random, several at a time",
  topology: "networked",
  env: {
    PENSTOCK_REPLICAS: "3",
    PENSTOCK_ACK_TIMEOUT_MS: "700",
    PENSTOCK_STREAM_BYTES_MAX: String(16 * 1_073_741_824),
  },
  faultMs: { short: 8_000, full: 120_000 },
  shape: {
    singleConnections: 16,
    singlePauseMs: 20,
    batchConnections: 4,
    batchPauseMs: 50,
    batchEvents: 20,
    largePauseMs: 1_000,
    importPauseMs: 20,
    largeImportEvery: 25,
  },
  delayMs: (random) => (random() < 0.5 ? 0 : Math.round(random() * delayMsMax)),
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const random = randomFrom(context.seed);
    const endMs = performance.now() + context.faultMs;
    const cluster = networkOf(context);
    const walker = { cluster, random, running: new Set(cluster.nodes) };
    const under: Step[] = [];
    let steps = 0;

    async function begin(kind: StepKind): Promise<void> {
      const step = await kind(walker);
      if (step === undefined) return;
      steps++;
      context.note(`${Math.round(performance.now() - endMs + context.faultMs)} ms: ${step.title}`);
      under.push(step);
    }

    async function calm(): Promise<void> {
      const lateMs = cluster.network.heal({ lost: random() < 0.5 });
      for (const step of under.splice(0)) await step.end?.();
      await recovered(context, "calm", lateMs);
      await complete(context);
    }

    while (performance.now() < endMs) {
      await begin(stepKinds[Math.floor(random() * stepKinds.length)]!);
      await context.hold(lengthMs(random));
      while (under.length > 0 && (under.length >= togetherMax || random() < 0.4)) {
        const [step] = under.splice(Math.floor(random() * under.length), 1);
        if (step?.end === undefined) cluster.network.heal({ lost: random() < 0.5 });
        else await step.end();
      }
      if (steps < stepsBetweenCalms) continue;
      steps = 0;
      await calm();
      if (random() >= diskLossChance) continue;
      await begin(diskLost);
      await loss(context, random);
      if (isOld(context)) await calm();
    }
    await calm();
  },
};

function isOld({ natsVersion }: ScenarioContext): boolean {
  return isOlder(natsVersion, oldestThatBearsMore);
}

/**
 * After cuts, a follower with 2.10 may lag permanently. It is restarted, as an operator would do.
 */
async function complete(context: ScenarioContext): Promise<void> {
  const behind = await whole(context).catch((error: Error) => error);
  if (behind === undefined) return;
  if (!isOld(context)) throw behind;
  context.note(`restarting all nodes, one after the other: ${behind.message}`);
  for (const node of context.store.nodes) {
    await node.restart();
    await recovered(context, "restarted");
  }
  await whole(context);
}

function lengthMs(random: Random): number {
  return Math.round(10 ** (random() * 2.6) * 25);
}

async function loss(context: ScenarioContext, random: Random): Promise<void> {
  await context.hold(Math.min(lengthMs(random), 3_000));
}
