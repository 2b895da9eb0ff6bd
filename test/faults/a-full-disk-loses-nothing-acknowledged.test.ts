import { expect, test } from "vitest";
import { diskFull } from "../../tools/faults/scenarios/disk-full.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a disk that fills in the middle of writes costs refusals, and nothing that was acknowledged", async () => {
  const result = await shortRun(diskFull);
  expect(answered(result, "503")).toBeGreaterThan(0);
  expect(result.notes).toHaveLength(1);
});
