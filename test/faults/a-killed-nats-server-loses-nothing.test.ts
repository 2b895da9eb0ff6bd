import { expect, test } from "vitest";
import { oldestNatsServer } from "../../testkit/nats-server.ts";
import { natsKilled } from "../../tools/faults/scenarios/nats-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("what was acknowledged before, during and after a kill of nats-server is stored", async () => {
  const result = await shortRun(natsKilled);
  expect(answered(result, "200")).toBeGreaterThan(100);
  expect(answered(result, "4")).toBeGreaterThan(0);
});

test("of the oldest nats-server too", async () => {
  const result = await shortRun(natsKilled, oldestNatsServer());
  expect(answered(result, "200")).toBeGreaterThan(100);
}, 180_000);
