import { expect, test } from "vitest";
import { clusterDiskLostWhileLagging } from "../../faults/scenarios/cluster-disk-lost-while-lagging.ts";
import { shortRun } from "./short-run.ts";

test("the newest nats-server waits for the last node that has everything", async () => {
  const result = await shortRun(clusterDiskLostWhileLagging);
  expect(result.lost).toBe(0);
}, 180_000);
