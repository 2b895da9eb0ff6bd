import { expect, test } from "vitest";
import { natsFrozenLong } from "../../tools/faults/scenarios/nats-frozen-long.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("requests that outlast their deadline get 503 timeout, and what is stored of them is never told as lost", async () => {
  const result = await shortRun(natsFrozenLong);
  expect(answered(result, "503 timeout")).toBeGreaterThan(0);
});
