import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keepMemoryAtRest } from "../../src/app/memory-at-rest.ts";
import { loadAddon } from "../../src/scan/native.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("memory is given back while nothing is in hand, until the end", () => {
  let inHand = 1;
  const trim = vi.fn();
  const end = keepMemoryAtRest({ bytesInHand: () => inHand, trim });
  vi.advanceTimersByTime(30_000);
  expect(trim).not.toHaveBeenCalled();
  inHand = 0;
  vi.advanceTimersByTime(10_000);
  expect(trim).toHaveBeenCalledOnce();
  end();
  vi.advanceTimersByTime(30_000);
  expect(trim).toHaveBeenCalledOnce();
});

test("the addon gives memory back", () => {
  const blocks = Array.from({ length: 64 }, () => Buffer.alloc(1_000_000, 1));
  expect(blocks).toHaveLength(64);
  expect(loadAddon().trimMemory()).toBeUndefined();
});
