import { expect, test } from "vitest";
import { embeddedNatsKilled } from "../../tools/faults/scenarios/embedded-nats-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("the gateway restarts a killed embedded nats-server and stores what waited", async () => {
  const result = await shortRun(embeddedNatsKilled);
  expect(answered(result, "200")).toBeGreaterThan(100);
});
