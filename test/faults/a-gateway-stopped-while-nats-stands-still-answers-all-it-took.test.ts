import { expect, test } from "vitest";
import { gatewayTerminatedWhileFrozen } from "../../tools/faults/scenarios/gateway-terminated-while-frozen.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a gateway that is told to stop waits for the acknowledgements of what it took, and ends with 0", async () => {
  const result = await shortRun(gatewayTerminatedWhileFrozen);
  expect(answered(result, "200")).toBeGreaterThan(100);
});
