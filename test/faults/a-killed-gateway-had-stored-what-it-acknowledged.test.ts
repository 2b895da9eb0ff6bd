import { expect, test } from "vitest";
import { gatewayKilled } from "../../tools/faults/scenarios/gateway-killed.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a gateway that is killed twice under load had stored all it acknowledged", async () => {
  const result = await shortRun(gatewayKilled);
  expect(answered(result, "error")).toBeGreaterThan(0);
});
