import { test } from "vitest";
import { clusterKilledWhileGrowing } from "../../tools/faults/scenarios/cluster-killed-while-growing.ts";
import { shortRun } from "../tools/faults/short-run.ts";

test("a kill of all nodes while streams get replicas takes nothing that was acknowledged", async () => {
  await shortRun(clusterKilledWhileGrowing);
}, 180_000);
