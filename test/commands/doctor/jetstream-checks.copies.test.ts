import { afterAll, expect, test } from "vitest";
import { until } from "../../kit/gateway.ts";
import { startCluster } from "../../kit/nats-layouts.ts";
import {
  doctor,
  doctorAt,
  expectOne,
  makeStreams,
  monitorOf,
  streamSettings,
} from "./doctor-kit.ts";

const nodes = await startCluster();
const [first, second] = [nodes[0]!, nodes[1]!];
afterAll(async () => {
  for (const node of nodes) await node.remove();
});
const access = { PENSTOCK_NATS_TOKEN: first.token ?? "" };

/** Nodes may consider one another offline for half a minute. */
const waitMsMax = 60_000;

/** A request before there is a leader gets no answer. */
async function hasLeader(monitor: string): Promise<boolean> {
  const answer = (await (await fetch(`${monitor}/jsz`)).json()) as {
    meta_cluster?: { leader?: string };
  };
  return (answer.meta_cluster?.leader ?? "") !== "";
}

test("doctor compares the replicas with the nodes of a cluster", {
  timeout: 5 * waitMsMax,
}, async () => {
  const three = { ...access, PENSTOCK_REPLICAS: "3" };
  await until(() => hasLeader(monitorOf(first)), waitMsMax);
  // A newly elected leader may not know all nodes yet.
  const made = (): Promise<boolean> =>
    makeStreams(first, { ...streamSettings, replicas: 3 }).then(
      () => true,
      () => false,
    );
  await until(made, waitMsMax);
  await until(
    async () => (await doctorAt(first, three)).of("replicas")[0]?.level === "ok",
    waitMsMax,
  );
  expect(expectOne(await doctorAt(first, three), "replicas", "ok").found).toBe("3, of 3 nodes");

  expect(expectOne(await doctorAt(first, access), "replicas", "warn").fix).toBe(
    "PENSTOCK_REPLICAS=3",
  );
  const five = { ...access, PENSTOCK_REPLICAS: "5" };
  expectOne(await doctorAt(first, five), "replicas", "warn");
  const monitored = await doctorAt(first, five, { monitor: monitorOf(first) });
  expect(expectOne(monitored, "replicas", "fail").found).toContain("the cluster has 3 nodes");
  expectOne(monitored, "jetstream", "ok");

  await second.stop();
  const urls = { ...three, PENSTOCK_NATS_URL: `${first.url},${nodes[2]!.url}` };
  await until(async () => {
    const found = (await doctor(urls)).of("replicas");
    return (
      found.length >= 2 &&
      found.every((finding) => finding.level === "warn" && finding.found.includes("nats-2"))
    );
  }, waitMsMax);
});
