import { expect, test } from "vitest";
import { sharedFramesNatsKilled } from "../../tools/faults/scenarios/shared-frames-nats-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("shared frames, partitions and workers keep the promise through two deaths of nats-server", async () => {
  const result = await shortRun(sharedFramesNatsKilled);
  expect(answered(result, "200")).toBeGreaterThan(100);
});
