import { expect, test } from "vitest";
import { recordMs } from "../../../../src/readers/effects/lines/line.ts";
import { storedFrame, storedLine } from "../line-kit.ts";

const storedAtMs = Date.UTC(2026, 10, 22, 12);
const hourMs = 3_600_000;

function timeOf(aheadMs: number): number {
  const receivedAtMs = storedAtMs + aheadMs;
  return recordMs(storedLine({ receivedAtMs, frame: storedFrame({ storedAtMs }) })) - storedAtMs;
}

test("the time of a record is its time of receipt", () => {
  expect([-365 * 24 * hourMs, 0, hourMs].map(timeOf)).toEqual([-365 * 24 * hourMs, 0, hourMs]);
});

test("the time of storage replaces a time of receipt far in the future", () => {
  expect([hourMs + 1, 365 * 24 * hourMs].map(timeOf)).toEqual([0, 0]);
});
