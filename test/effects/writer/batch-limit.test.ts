import { expect, test } from "vitest";
import { BatchLimit } from "../../../src/effects/writer/batch-limit.ts";

function succeed(limit: BatchLimit, times: number): void {
  for (let nth = 0; nth < times; nth++) limit.succeeded();
}

test("after one that was too slow there are half as many, of those that it had", () => {
  const limit = new BatchLimit(100_000);
  limit.tooSlow(30_001);
  expect(limit.events).toBe(15_000);
  // As of a part, where nobody says how many it had.
  limit.tooSlow(Number.POSITIVE_INFINITY);
  expect(limit.events).toBe(7_500);
});

test("there is always room for one", () => {
  const limit = new BatchLimit(100);
  for (let nth = 0; nth < 10; nth++) limit.tooSlow(Number.POSITIVE_INFINITY);
  expect(limit.events).toBe(1);
});

test("sixteen that succeed make it twice as many, but not more than the most", () => {
  const limit = new BatchLimit(100);
  limit.tooSlow(60);
  succeed(limit, 15);
  expect(limit.events).toBe(30);
  succeed(limit, 1);
  expect(limit.events).toBe(60);
  succeed(limit, 16);
  expect(limit.events).toBe(100);
  succeed(limit, 16);
  expect(limit.events).toBe(100);
});

test("one that is too slow lets the counting begin anew", () => {
  const limit = new BatchLimit(100);
  limit.tooSlow(80);
  succeed(limit, 15);
  limit.tooSlow(40);
  succeed(limit, 15);
  expect(limit.events).toBe(20);
});
