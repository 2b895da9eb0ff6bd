// Where nats-server loses what it has acknowledged, which before 2.12 it does here, the gateway
// must have said that its store went back.

import { expect, test } from "vitest";
import { findNatsServer, oldestNatsServer } from "../../testkit/nats-server.ts";
import { clusterDiskLostWhileLagging } from "../../tools/faults/scenarios/cluster-disk-lost-while-lagging.ts";
import { shortRun } from "../tools/faults/short-run.ts";

test("the newest nats-server waits for the last node that has everything", async () => {
  const result = await shortRun(clusterDiskLostWhileLagging, findNatsServer());
  expect(result.lost).toBe(0);
}, 180_000);

test("the oldest loses it, and the gateway tells", async () => {
  await shortRun(clusterDiskLostWhileLagging, oldestNatsServer());
}, 180_000);
