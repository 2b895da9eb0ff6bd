import { expect, test } from "vitest";
import { serverLimit } from "../../tools/faults/scenarios/server-limit.ts";
import { answered, shortRun } from "../tools/faults/short-run.ts";

test("a server without room for any stream refuses, and takes events again once it has room", async () => {
  const result = await shortRun(serverLimit);
  expect(answered(result, "503 store_full")).toBeGreaterThan(0);
});
