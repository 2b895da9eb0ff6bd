import { expect, test } from "vitest";
import { streamFull } from "../../tools/faults/scenarios/stream-full.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("full streams answer 503 store_full, and take events again once emptied", async () => {
  const result = await shortRun(streamFull);
  expect(answered(result, "503 store_full")).toBeGreaterThan(0);
});
