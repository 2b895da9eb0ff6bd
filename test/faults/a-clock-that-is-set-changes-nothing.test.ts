import { expect, test } from "vitest";
import { clockSteps } from "../../tools/faults/scenarios/clock-steps.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a wall clock that steps an hour back and forth costs nobody anything", async () => {
  const result = await shortRun(clockSteps);
  expect(answered(result, "503") + answered(result, "error")).toBe(0);
});
