import { expect, test } from "vitest";
import { storeNotRestored } from "../../tools/faults/scenarios/store-not-restored.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("without its streams the store takes nothing, and with them it has all that was acknowledged", async () => {
  const result = await shortRun(storeNotRestored);
  expect(answered(result, "503")).toBeGreaterThan(0);
});
