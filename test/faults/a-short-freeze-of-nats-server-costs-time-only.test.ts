import { expect, test } from "vitest";
import { natsFrozenBriefly } from "../../tools/faults/scenarios/nats-frozen-briefly.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("requests wait out a nats-server that stands still for less than their deadline", async () => {
  const result = await shortRun(natsFrozenBriefly);
  expect(result.unknown).toBe(0);
  expect(answered(result, "error")).toBe(0);
});
