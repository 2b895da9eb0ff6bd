import { expect, test } from "vitest";
import { workerKilled } from "../../tools/faults/scenarios/worker-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a worker that is killed had stored what it acknowledged, and another takes its place", async () => {
  const result = await shortRun(workerKilled);
  expect(answered(result, "error")).toBeGreaterThan(0);
});
