import { expect, test } from "vitest";
import { natsKilledAgainAndAgain } from "../../tools/faults/scenarios/nats-killed-again-and-again.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("what was in flight through several lives of nats-server is stored once or not acknowledged", async () => {
  const result = await shortRun(natsKilledAgainAndAgain);
  expect(answered(result, "503 unavailable")).toBeGreaterThan(0);
});
