import { test } from "vitest";
import { clusterLeaderCutOff } from "../../tools/faults/scenarios/cluster-leader-cut-off.ts";
import { shortRun } from "../tools/faults/short-run.ts";

test("while the leader is cut off from the other nodes, events are acknowledged through those", async () => {
  await shortRun(clusterLeaderCutOff, undefined, "proxies");
}, 180_000);
