import { expect, test } from "vitest";
import { BatchLimit } from "../../../src/readers/stream/batch-limit.ts";

function tooSlow(limit: BatchLimit, events: number): void {
  limit.tries(events);
  limit.tooSlow();
}

function succeed(limit: BatchLimit, times: number): void {
  for (let nth = 0; nth < times; nth++) limit.succeeded();
}

test("after one that was too slow there are half as many, of those that it had", () => {
  const limit = new BatchLimit(100_000);
  tooSlow(limit, 30_001);
  expect(limit.events).toBe(15_000);
  // As of a part, where nobody says how many it had.
  tooSlow(limit, Number.POSITIVE_INFINITY);
  expect(limit.events).toBe(7_500);
});

test("there is always room for one", () => {
  const limit = new BatchLimit(100);
  for (let nth = 0; nth < 10; nth++) tooSlow(limit, Number.POSITIVE_INFINITY);
  expect(limit.events).toBe(1);
});

test("sixteen that succeed make it twice as many, but not more than the most", () => {
  const limit = new BatchLimit(100);
  tooSlow(limit, 60);
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
  tooSlow(limit, 80);
  succeed(limit, 15);
  tooSlow(limit, 40);
  succeed(limit, 15);
  expect(limit.events).toBe(20);
});

test("transactions that fail in a row are halved from the second on, not where none was tried", () => {
  const limit = new BatchLimit(100);
  const fail = (): number => {
    limit.tries(80);
    limit.failed();
    return limit.events;
  };
  expect([fail(), fail(), fail()]).toEqual([100, 40, 20]);
  limit.failed();
  expect(limit.events).toBe(20);
  limit.succeeded();
  expect([fail(), fail()]).toEqual([20, 10]);
});
