import { expect, test } from "vitest";
import { runChild, startScansSource } from "../child.ts";

// Simdjson reads this variable when it chooses. With an unknown name it rejects every text.
// of every text.
const source = `
  ${startScansSource}
  createNativeScanner(1);
  process.env.SIMDJSON_FORCE_IMPLEMENTATION = "none";
  console.log("status", ...(await Promise.all(startScans(1))));
`;

test("the processor's code is chosen when the addon loads, so that no scan on another thread reads the environment", () => {
  expect(runChild(source)).toEqual({ exitCode: 0, signal: null, output: "status 0\n" });
});
