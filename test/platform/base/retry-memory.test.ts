import { expect, test } from "vitest";
import { RetryMemory } from "../../../src/platform/base/retry-memory.ts";

test("the retry memory returns each value of a key once, oldest first", () => {
  const memory = new RetryMemory<number>(() => 0);
  expect(memory.isEmpty).toBe(true);
  memory.remember("a", 1);
  memory.remember("b", 2);
  memory.remember("a", 3);
  expect([memory.take("a"), memory.take("a"), memory.take("a")]).toEqual([1, 3, undefined]);
  expect(memory.isEmpty).toBe(false);
  expect(memory.take("b")).toBe(2);
  expect(memory.isEmpty).toBe(true);
});

test("the retry memory forgets a value after two minutes", () => {
  let now = 0;
  const memory = new RetryMemory<number>(() => now);
  memory.remember("a", 1);
  now = 60_000;
  memory.remember("a", 2);
  now = 120_000;
  expect(memory.take("a")).toBe(2);
  memory.remember("b", 3);
  now = 240_000;
  expect(memory.isEmpty).toBe(true);
  expect(memory.take("b")).toBeUndefined();
});

test("the retry memory forgets the oldest values beyond 16,384", () => {
  const memory = new RetryMemory<number>(() => 0);
  for (let value = 0; value < 16_386; value++) memory.remember("a", value);
  expect(memory.take("a")).toBe(2);
  for (let value = 0; value < 16_384; value++) memory.remember(`b${value}`, value);
  expect(memory.take("a")).toBeUndefined();
  expect(memory.take("b0")).toBe(0);
});
