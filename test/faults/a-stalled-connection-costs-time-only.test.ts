import { expect, test } from "vitest";
import { connectionStalled } from "../../tools/faults/scenarios/connection-stalled.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("requests wait for a network that is silent for a while", async () => {
  const result = await shortRun(connectionStalled);
  expect(answered(result, "503")).toBe(0);
  expect(result.duplicated).toBe(0);
});
