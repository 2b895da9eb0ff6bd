import { expect, test } from "vitest";
import { acksLost } from "../../tools/faults/scenarios/acks-lost.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("frames are sent again for want of an acknowledgement, and not one of them is stored twice", async () => {
  const result = await shortRun(acksLost);
  expect(answered(result, "503")).toBe(0);
  expect(result.duplicated).toBe(0);
});
