import { expect, test } from "vitest";
import { Meter } from "../../../src/gateway/projects/quota/meter.ts";
import {
  errorTable,
  expansionBytesAMinute,
  expansionText,
} from "../../../src/platform/base/errors.ts";
import { settings } from "../../../src/platform/settings/config.ts";
import { costOf, waitMsOf } from "../../kit/cost-of.ts";

test("a project may use its whole expansion allowance in one request", () => {
  let monotonicMs = 0;
  const meter = new Meter(() => monotonicMs);
  const waitMs = (expansion: number) => waitMsOf(meter, costOf(1, 1, expansion));
  expect(waitMs(expansionBytesAMinute + 1)).toBe(Number.POSITIVE_INFINITY);
  expect(waitMs(expansionBytesAMinute)).toBe(0);
  expect(waitMs(expansionBytesAMinute)).toBeCloseTo(60_000);
  monotonicMs = 60_000;
  expect(waitMs(expansionBytesAMinute)).toBe(0);
});

test("the texts of errors and settings state the expansion allowance", () => {
  expect(expansionText).toBe("64 MiB");
  for (const text of [
    errorTable.expands_too_far.when,
    errorTable.project_full.when,
    settings.expansionMax.why,
  ]) {
    expect(text).toContain(expansionText);
  }
});
