import { expect, test } from "vitest";
import { clusterLeaderStepsDown } from "../../tools/faults/scenarios/cluster-leader-steps-down.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("no request is refused while leaders change", async () => {
  const result = await shortRun(clusterLeaderStepsDown);
  expect(answered(result, "503")).toBe(0);
  expect(result.duplicated).toBe(0);
}, 60_000);
