import { expect, test } from "vitest";
import { clientsAbort } from "../../tools/faults/scenarios/clients-abort.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("clients that go at every stage of a request cost the others nothing", async () => {
  const result = await shortRun(clientsAbort);
  expect(answered(result, "503") + answered(result, "error")).toBe(0);
  expect(result.storedThoughUnknown).toBeGreaterThan(0);
});
