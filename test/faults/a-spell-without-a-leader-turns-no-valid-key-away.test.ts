import { expect, test } from "vitest";
import { clusterLeaderlessSpell } from "../../tools/faults/scenarios/cluster-leaderless-spell.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("while no stream has a leader, known keys get 503 and unknown ones no 200", async () => {
  const result = await shortRun(clusterLeaderlessSpell);
  expect(answered(result, "503")).toBeGreaterThan(0);
}, 180_000);
