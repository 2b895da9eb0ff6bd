import { expect, test } from "vitest";
import { clusterLeaderKilled } from "../../tools/faults/scenarios/cluster-leader-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("what was acknowledged before, during and after the loss of a stream's leader is stored once", async () => {
  const result = await shortRun(clusterLeaderKilled);
  expect(answered(result, "200")).toBeGreaterThan(100);
}, 60_000);
