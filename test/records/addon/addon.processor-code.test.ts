import { expect, test } from "vitest";
import { runChild, startScansSource } from "../child.ts";

// simdjson reads this variable to select the code for the processor. For an unknown name, it
// rejects every text.
const source = `
  ${startScansSource}
  createNativeScanner(1);
  process.env.SIMDJSON_FORCE_IMPLEMENTATION = "none";
  console.log("status", ...(await Promise.all(startScans(1))));
`;

test("simdjson chooses the code for the processor when the addon loads", () => {
  expect(runChild(source)).toEqual({ exitCode: 0, signal: null, output: "status 0\n" });
});
