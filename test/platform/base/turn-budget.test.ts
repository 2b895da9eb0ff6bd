import { expect, test } from "vitest";
import { workClock } from "../../../src/platform/base/turn-budget.ts";

function thread() {
  const at = { cpuMs: 5, monotonicMs: 1_000, asked: 0 };
  const workMs = workClock({
    cpuMs: () => {
      at.asked++;
      return at.cpuMs;
    },
    monotonicMs: () => at.monotonicMs,
  });
  const pass = (ms: number, isWorking: boolean): void => {
    at.monotonicMs += ms;
    if (isWorking) at.cpuMs += ms;
  };
  return { at, workMs, pass };
}

test("the work clock measures CPU time with few system calls", () => {
  const { at, workMs, pass } = thread();
  expect(workMs()).toBe(5);
  for (let times = 0; times < 100; times++) {
    pass(0.01, true);
    expect(workMs()).toBeCloseTo(at.cpuMs, 6);
  }
  expect(at.asked).toBeLessThanOrEqual(5);
});

test("the work clock never goes back", () => {
  const { at, workMs, pass } = thread();
  workMs();
  pass(0.2, false);
  expect(workMs()).toBeCloseTo(5.2, 6);
  pass(50, false);
  // The system reports 5, which is less than the earlier result.
  expect(workMs()).toBeCloseTo(5.2, 6);
  pass(3, true);
  expect(workMs()).toBeCloseTo(at.cpuMs, 6);
});
