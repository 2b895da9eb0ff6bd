import type { TestNatsServer } from "../kit/nats-server.ts";
import type { ClusterNetwork } from "./cluster-network.ts";
import type { ClusterStore } from "./cluster-store.ts";
import type { ScenarioContext, Store } from "./scenario.ts";

export const liveStream = "PENSTOCK_LIVE_0";
export const historicalStream = "PENSTOCK_HISTORICAL_0";

export function isCluster(store: Store): store is ClusterStore {
  return "whole" in store && "stepDown" in store;
}

export function clusterOf({ store }: ScenarioContext): ClusterStore {
  if (!isCluster(store)) throw new Error("run a cluster scenario: the store is no cluster");
  return store;
}

export interface NetworkedCluster extends ClusterStore {
  readonly network: ClusterNetwork;
}

export function networkOf(context: ScenarioContext): NetworkedCluster {
  const cluster = clusterOf(context);
  if (!hasNetwork(cluster)) throw new Error("cut a network: the cluster has none");
  return cluster;
}

function hasNetwork(cluster: ClusterStore): cluster is NetworkedCluster {
  return cluster.network !== undefined;
}

export async function besideLeader(context: ScenarioContext): Promise<TestNatsServer> {
  const { nodes, network, leaderOf } = networkOf(context);
  const leader = await leaderOf(liveStream);
  for (const [number, node] of nodes.entries())
    if (node !== leader) network.cut("gateway", number, "reset");
  await recovered(context, "gateway connected to the leader alone");
  return leader;
}

/**
 * Waits for a leader of both streams, then for acknowledged events. Rejects if the gateway takes
 * too long to use an elected leader.
 */
export async function recovered(
  context: ScenarioContext,
  cause: string,
  lateMs = 0,
): Promise<void> {
  const { store, note, recoveryMsMax } = context;
  const startedMs = performance.now();
  await Promise.all([store.leaderOf(liveStream), store.leaderOf(historicalStream)]);
  const leaderMs = performance.now();
  await context.acknowledged(1);
  const acknowledgedMs = performance.now() - leaderMs;
  note(
    `${cause}: a leader after ${round(leaderMs - startedMs)} ms, events acknowledged ${round(acknowledgedMs)} ms later`,
  );
  if (acknowledgedMs > recoveryMsMax + lateMs) {
    throw new Error(
      `recover from "${cause}": nothing acknowledged for ${round(acknowledgedMs)} ms under a leader`,
    );
  }
}

export async function whole(context: ScenarioContext): Promise<void> {
  const cluster = clusterOf(context);
  await Promise.all([cluster.whole(liveStream), cluster.whole(historicalStream)]);
}

function round(ms: number): string {
  return Math.round(ms).toLocaleString("en");
}
