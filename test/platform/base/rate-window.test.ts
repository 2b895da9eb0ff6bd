import { expect, test } from "vitest";
import { RateWindow } from "../../../src/platform/base/rate-window.ts";

test("a rate window restores its amount only when it ends", () => {
  let nowMs = 5_000;
  const window = new RateWindow({ max: 3, monotonicMs: () => nowMs });
  window.spend(1);
  expect([window.left, window.isSpent]).toEqual([2, false]);
  nowMs += 999;
  window.spend(2);
  expect([window.left, window.isSpent]).toEqual([0, true]);
  nowMs += 1;
  expect([window.left, window.isSpent]).toEqual([3, false]);
});

test("an overspent rate window does not affect the next window", () => {
  let nowMs = 0;
  const window = new RateWindow({ max: 3, windowMs: 10, monotonicMs: () => nowMs });
  window.spend(8);
  expect([window.left, window.isSpent]).toEqual([-5, true]);
  nowMs = 10;
  expect(window.left).toBe(3);
});
