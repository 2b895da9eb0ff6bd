import { expect, test } from "vitest";
import { everythingKilled } from "../../tools/faults/scenarios/everything-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("what was acknowledged before gateway and nats-server died together is stored", async () => {
  const result = await shortRun(everythingKilled);
  expect(answered(result, "error")).toBeGreaterThan(0);
});
