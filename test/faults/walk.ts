// The random faults of a cluster. Only one disk is lost at a time, and only while all replicas are
// complete. A nats-server before 2.12 must recover completely before the next fault, because it
// otherwise loses data (its pull request 7038).

import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Cut, End } from "./cluster-network.ts";
import { historicalStream, liveStream, type NetworkedCluster } from "./cluster-watch.ts";
import type { Random } from "./random.ts";

export interface Step {
  readonly title: string;
  /** Undoes the step. undefined if healing the network undoes the step. */
  readonly end?: () => Promise<void> | void;
}

interface Walker {
  readonly cluster: NetworkedCluster;
  readonly random: Random;
  readonly running: Set<TestNatsServer>;
}

const delayMsMax = 200;
const bytesPerSecondMin = 100_000;
const bytesPerSecondMax = 5_000_000;

export type StepKind = (walker: Walker) => Promise<Step | undefined> | Step | undefined;

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)]!;
}

function numberOf({ cluster }: Walker, node: TestNatsServer): number {
  return cluster.nodes.indexOf(node);
}

function cutOf(random: Random): Cut {
  return pick(["silent", "silent", "reset", "one-way"], random);
}

function anyRunning({ running, random }: Walker): TestNatsServer | undefined {
  return running.size === 0 ? undefined : pick([...running], random);
}

const pairCut: StepKind = ({ cluster, random }) => {
  const ends: readonly End[] = [...cluster.nodes.keys()];
  const from = pick(ends, random);
  const to = pick(
    ends.filter((end) => end !== from),
    random,
  );
  const how = cutOf(random);
  cluster.network.cut(from, to, how);
  return { title: `${how} between ${from} and ${to}` };
};

const nodeIsolated: StepKind = ({ cluster, random }) => {
  const node = pick([...cluster.nodes.keys()], random);
  const how = cutOf(random);
  cluster.network.isolate([node], how);
  return { title: `${how} around ${node}` };
};

const sideCut: StepKind = ({ cluster, random }) => {
  const node = pick([...cluster.nodes.keys()], random);
  const how = cutOf(random);
  cluster.network.isolate([node, "gateway"], how);
  return { title: `${how} around ${node} and the gateway` };
};

const gatewayCut: StepKind = ({ cluster, random }) => {
  const node = pick([...cluster.nodes.keys()], random);
  const how = cutOf(random);
  cluster.network.cut("gateway", node, how);
  return { title: `${how} from the gateway to ${node}` };
};

const slowed: StepKind = ({ cluster, random }) => {
  const ends: readonly End[] = ["gateway", ...cluster.nodes.keys()];
  const speed = {
    delayMs: Math.round(random() * delayMsMax),
    bytesPerSecond: Math.round(
      bytesPerSecondMin + random() * (bytesPerSecondMax - bytesPerSecondMin),
    ),
  };
  const from = pick(ends, random);
  const others = ends.filter((end) => end !== from);
  return { title: `slow around ${from}: ${cluster.network.slow(from, others, speed)}` };
};

const frozen: StepKind = (walker) => {
  const node = anyRunning(walker);
  if (node === undefined) return undefined;
  walker.running.delete(node);
  node.freeze();
  return {
    title: `${numberOf(walker, node)} frozen`,
    end() {
      node.thaw();
      walker.running.add(node);
    },
  };
};

const killed: StepKind = async (walker) => {
  const node = anyRunning(walker);
  if (node === undefined) return undefined;
  walker.running.delete(node);
  await node.kill();
  return { title: `${numberOf(walker, node)} killed`, end: () => restarted(walker, [node]) };
};

const allKilled: StepKind = async (walker) => {
  const nodes = [...walker.running];
  walker.running.clear();
  await Promise.all(nodes.map((node) => node.kill()));
  return { title: "all killed", end: () => restarted(walker, nodes) };
};

async function restarted({ running }: Walker, nodes: readonly TestNatsServer[]): Promise<void> {
  for (const node of nodes) {
    await node.restart();
    running.add(node);
  }
}

const steppedDown: StepKind = async ({ cluster, random }) => {
  const stream = pick([liveStream, historicalStream], random);
  const done = await cluster.stepDown(stream).then(
    () => true,
    () => false,
  );
  return { title: `${stream} ${done ? "steps down" : "has no leader to step down"}` };
};

export const stepKinds: readonly StepKind[] = [
  pairCut,
  nodeIsolated,
  sideCut,
  sideCut,
  gatewayCut,
  slowed,
  frozen,
  frozen,
  killed,
  allKilled,
  steppedDown,
];

export const diskLost: StepKind = async (walker) => {
  const node = anyRunning(walker);
  if (node === undefined) return undefined;
  walker.running.delete(node);
  await walker.cluster.loseDisk(node);
  return {
    title: `${numberOf(walker, node)} loses its disk`,
    end: () => restarted(walker, [node]),
  };
};
