import { afterEach, describe, expect, test, vi } from "vitest";
import { BodyMemory } from "../../../src/gateway/body/body-buffer.ts";

const MIB = 1_048_576;

afterEach(() => vi.useRealTimers());

describe("the pool of body memory", () => {
  test("reuses the smallest block that fits", () => {
    const memory = new BodyMemory();
    const [small, large] = [memory.take(MIB), memory.take(20 * MIB)];
    memory.give(large);
    memory.give(small);
    expect(memory.keptBytes).toBe(21 * MIB);
    // toBe would print 20 MiB if this failed.
    expect(memory.take(MIB) === small).toBe(true);
    expect(memory.take(4 * MIB) === large).toBe(false);
    expect(memory.take(6 * MIB) === large).toBe(true);
    expect(memory.take(6 * MIB) === large).toBe(false);
    expect(memory.keptBytes).toBe(0);
  });

  test("frees its smallest blocks if it exceeds its limit", () => {
    const memory = new BodyMemory();
    const blocks = [
      memory.take(2 * MIB),
      memory.take(8 * MIB),
      memory.take(20 * MIB),
      memory.take(20 * MIB),
    ];
    for (const block of blocks) memory.give(block);
    expect(memory.keptBytes).toBe(40 * MIB);
    expect(blocks.map((block) => block.length / MIB)).toEqual([0, 0, 20, 20]);
    const huge = memory.take(100 * MIB);
    memory.give(huge);
    expect([huge.length, memory.keptBytes]).toEqual([0, 40 * MIB]);
  });

  test("frees all blocks after a period without bodies", () => {
    vi.useFakeTimers();
    const memory = new BodyMemory();
    memory.give(memory.take(MIB));
    vi.advanceTimersByTime(7_500);
    memory.give(memory.take(MIB));
    vi.advanceTimersByTime(7_500);
    expect(memory.keptBytes).toBe(MIB);
    vi.advanceTimersByTime(5_000);
    expect(memory.keptBytes).toBe(0);
  });
});
