import { expect, test } from "vitest";
import { scenarios } from "../../faults/scenarios.ts";
import { clusterRuns, onlyInFullForm, singleRuns } from "./scenario-table.ts";
import { testShortRuns } from "./short-run.ts";

testShortRuns(singleRuns);

test("every fault scenario runs here or is listed as a full-form scenario", () => {
  const runHere = [...singleRuns, ...clusterRuns].map(({ scenario }) => scenario);
  expect([...new Set(runHere), ...onlyInFullForm].sort()).toEqual(
    scenarios.map(({ name }) => name).sort(),
  );
});
