import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FrameMemory } from "../../../src/gateway/publish/frame-memory.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("frame memory", () => {
  test("is reused if it is returned and needed soon", () => {
    const pool = new FrameMemory(524_288);
    const memory = pool.takeOwn(1_000);
    pool.give(memory);
    vi.advanceTimersByTime(9_000);
    expect(pool.takeOwn(1_000)).toBe(memory);
  });

  test("is freed if it is unused for ten seconds", () => {
    const pool = new FrameMemory(524_288);
    const memory = pool.takeOwn(500_000);
    pool.give(memory);
    vi.advanceTimersByTime(10_000);
    expect(memory.length).toBe(0);
    expect(pool.takeOwn(500_000)).not.toBe(memory);
  });

  test("stays in the pool while it is used", () => {
    const pool = new FrameMemory(524_288);
    const large = pool.takeOwn(500_000);
    pool.give(large);
    for (let round = 0; round < 5; round++) {
      vi.advanceTimersByTime(7_500);
      pool.give(pool.takeOwn(1_000));
    }
    expect(pool.takeOwn(500_000)).toBe(large);
  });
});
