import { expect, test } from "vitest";
import { UuidWindow } from "../../../src/readers/consumer/uuid-window.ts";

function windowAt(clock: { ms: number }, maxUuids = 3): UuidWindow {
  return new UuidWindow({ maxUuids, windowMs: 1_000, monotonicMs: () => clock.ms });
}

test("the deduplication window finds a uuid in another frame of the project, not in the same frame", () => {
  const window = windowAt({ ms: 0 });
  expect(window.duplicateOf("shop/a", 1)).toBeUndefined();
  expect(window.duplicateOf("shop/a", 1)).toBeUndefined();
  expect(window.duplicateOf("other/a", 2)).toBeUndefined();
  expect(window.duplicateOf("shop/a", 3)).toBe(1);
});

test("the deduplication window holds a limited number of uuids, and removes the oldest", () => {
  const window = windowAt({ ms: 0 });
  for (const uuid of ["a", "b", "c", "d"]) window.duplicateOf(`shop/${uuid}`, 1);
  expect(window.size).toBe(3);
  expect(window.duplicateOf("shop/b", 2)).toBe(1);
  expect(window.duplicateOf("shop/a", 2)).toBeUndefined();
});

test("the deduplication window ends after its duration", () => {
  const clock = { ms: 0 };
  const window = windowAt(clock);
  window.duplicateOf("shop/a", 1);
  clock.ms = 999;
  expect(window.duplicateOf("shop/a", 2)).toBe(1);
  clock.ms = 1_000;
  expect(window.duplicateOf("shop/a", 2)).toBeUndefined();
  expect(window.size).toBe(1);
});

test("a deduplication window of size 0 holds nothing", () => {
  const window = windowAt({ ms: 0 }, 0);
  expect(window.duplicateOf("shop/a", 1)).toBeUndefined();
  expect(window.duplicateOf("shop/a", 2)).toBeUndefined();
  expect(window.size).toBe(0);
});
