import { test } from "vitest";
import { clusterRandomWalk } from "../../tools/faults/scenarios/cluster-random-walk.ts";
import { shortRun } from "../tools/faults/short-run.ts";

test("several troubles at a time lose nothing, turn no valid key away, and leave all replicas equal", async () => {
  await shortRun(clusterRandomWalk);
}, 180_000);
