import { expect, test } from "vitest";
import { connectionCut } from "../../tools/faults/scenarios/connection-cut.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("what was acknowledged is stored once though its connection was reset", async () => {
  const result = await shortRun(connectionCut);
  expect(answered(result, "503 unavailable")).toBeGreaterThan(0);
  expect(answered(result, "503 timeout")).toBe(0);
});
