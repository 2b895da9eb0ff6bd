// What the cluster scenarios share: the store as a cluster, and how soon after a leader is there events are acknowledged again.

import type { ClusterStore } from "./cluster-store.ts";
import type { ScenarioContext, Store } from "./scenario.ts";

export const liveStream = "PENSTOCK_LIVE_0";
export const historicalStream = "PENSTOCK_HISTORICAL_0";

function isCluster(store: Store): store is ClusterStore {
  return "whole" in store && "stepDown" in store;
}

export function clusterOf({ store }: ScenarioContext): ClusterStore {
  if (!isCluster(store)) throw new Error("run a cluster scenario: the store is no cluster");
  return store;
}

/**
 * Waits for a leader of both streams, then for events that are acknowledged under it, and notes both. Rejects when there is a leader and
 * the gateway takes longer to make use of it than a recovery may take.
 */
export async function recovered(context: ScenarioContext, cause: string): Promise<void> {
  const { store, note, recoveryMsMax } = context;
  const startedMs = performance.now();
  await Promise.all([store.leaderOf(liveStream), store.leaderOf(historicalStream)]);
  const leaderMs = performance.now();
  await context.acknowledged(1);
  const acknowledgedMs = performance.now() - leaderMs;
  note(
    `${cause}: a leader after ${round(leaderMs - startedMs)} ms, events acknowledged ${round(acknowledgedMs)} ms later`,
  );
  if (acknowledgedMs > recoveryMsMax) {
    throw new Error(`recover from "${cause}": nothing acknowledged for ${round(acknowledgedMs)} ms under a leader`);
  }
}

/** Fulfilled when every replica of both streams has everything: another node may go. */
export async function whole(context: ScenarioContext): Promise<void> {
  const cluster = clusterOf(context);
  await Promise.all([cluster.whole(liveStream), cluster.whole(historicalStream)]);
}

function round(ms: number): string {
  return Math.round(ms).toLocaleString("en");
}
