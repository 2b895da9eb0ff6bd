import { describe, expect, test } from "vitest";
import { MemoryPool } from "../../../src/platform/base/memory-pool.ts";

describe("the memory pool", () => {
  test("reuses a block only for the same size if waste is forbidden", () => {
    const pool = new MemoryPool({
      keptBytesMax: 1_000,
      full: "drop_smallest",
      idleMs: 1_000,
      wasteFactor: 1,
    });
    const blocks = [pool.take(100), pool.take(100), pool.take(200)];
    for (const block of blocks) pool.give(block);
    expect(pool.keptBytes).toBe(400);
    expect(blocks.includes(pool.take(150))).toBe(false);
    expect([pool.take(100), pool.take(100)].every((block) => blocks.includes(block))).toBe(true);
    expect(pool.take(100)).not.toBe(blocks[0]);
    expect(pool.take(200)).toBe(blocks[2]);
    expect(pool.keptBytes).toBe(0);
  });

  test("reuses the smallest block that fits", () => {
    const pool = new MemoryPool({
      keptBytesMax: 100_000,
      full: "drop_smallest",
      idleMs: 1_000,
      wasteFactor: 4,
    });
    const sizes = Array.from({ length: 100 }, (_, index) => 100 + ((index * 37) % 100));
    for (const size of sizes) pool.give(Buffer.allocUnsafeSlow(size));
    for (let size = 199; size >= 100; size--) expect(pool.take(size).length).toBe(size);
    expect(pool.keptBytes).toBe(0);
    const block = pool.take(1_000);
    pool.give(block);
    expect(pool.take(250)).toBe(block);
  });

  test("drops its smallest blocks or the new block when it is full", () => {
    const options = { keptBytesMax: 1_000, idleMs: 1_000, wasteFactor: 1 };
    const given = [100, 800, 300].map((size) => Buffer.allocUnsafeSlow(size));
    const refusing = new MemoryPool({ ...options, full: "refuse" });
    for (const block of given) refusing.give(block);
    expect(refusing.keptBytes).toBe(900);
    expect(refusing.take(100)).toBe(given[0]);

    const dropping = new MemoryPool({ ...options, full: "drop_smallest" });
    for (const size of [100, 800, 300]) dropping.give(Buffer.allocUnsafeSlow(size));
    expect(dropping.keptBytes).toBe(800);
  });
});
