import { expect, test } from "vitest";
import { gatewayTerminated } from "../../tools/faults/scenarios/gateway-terminated.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a gateway that is told to stop answers what it took, and loses nothing", async () => {
  const result = await shortRun(gatewayTerminated);
  expect(answered(result, "error ECONNREFUSED")).toBeGreaterThan(0);
});
