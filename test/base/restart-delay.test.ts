import { expect, test } from "vitest";
import { RestartDelay } from "../../src/base/restart-delay.ts";

test("what dies again and again waits twice as long each time, up to five seconds", () => {
  const restart = new RestartDelay();
  const waits = Array.from({ length: 8 }, () => restart.afterMs(0));
  expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
});

test("what ran for more than half a minute waits as at its first death", () => {
  const restart = new RestartDelay();
  for (let deaths = 0; deaths < 4; deaths++) restart.afterMs(0);
  expect(restart.afterMs(30_001)).toBe(100);
  expect(restart.afterMs(30_000)).toBe(200);
});
