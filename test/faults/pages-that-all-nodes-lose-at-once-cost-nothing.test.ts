import { test } from "vitest";
import { clusterPagesLostAtOnce } from "../../tools/faults/scenarios/cluster-pages-lost-at-once.ts";
import { shortRun } from "../tools/faults/short-run.ts";

test("a power cut of the whole cluster takes nothing that was acknowledged", async () => {
  await shortRun(clusterPagesLostAtOnce);
}, 180_000);
