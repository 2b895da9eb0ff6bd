import { describe, expect, test } from "vitest";
import { Kit, type TestFrame } from "./together-kit.ts";

describe("live frames after a failed batch", () => {
  test("are sent one by one for a while", () => {
    const kit = new Kit(16);
    kit.add(100);
    kit.flush();
    kit.partBatch();
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 64, batches: [] });
    kit.settleAlone(64);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 36, batches: [] });
    kit.settleAlone(36);
    kit.add(100);
    for (let left = 0; left < 1_000; left += 50) {
      expect(kit.underWay.batches).toEqual([]);
      kit.flush();
      kit.settleAlone(64);
      kit.add(50);
    }
    kit.flush();
    expect(kit.underWay.batches).toHaveLength(1);
  });

  test("are sent at one per three frames of the failed batch", () => {
    const kit = new Kit(16);
    kit.add(100);
    kit.flush();
    const [batch = []] = kit.batches;
    kit.partBatch();
    kit.add(50);
    kit.add(50, true);
    kit.flush();
    const again = (): TestFrame[] => kit.alone.filter((frame) => batch.includes(frame));
    expect(again()).toEqual(batch.slice(0, 48));
    const others = kit.alone.filter((frame) => !batch.includes(frame));
    expect(others.filter(({ queue }) => queue.background)).toHaveLength(8);
    kit.settleAlone(1);
    kit.flush();
    kit.settleAlone(1);
    kit.flush();
    expect(again()).toHaveLength(48);
    for (const left of [64, 64, 200 - 66 - 64 - 64]) {
      kit.settleAlone(Number.POSITIVE_INFINITY);
      kit.flush();
      expect(kit.underWay).toEqual({ alone: left, batches: [] });
    }
  });

  test("wait for the frame of their project that is sent again", () => {
    const kit = new Kit(16);
    kit.add(20);
    kit.flush();
    const queue = kit.batches[0]![0]!.queue;
    kit.add(1, true);
    kit.flush();
    expect(kit.departures.mayLeave(queue)).toBe(true);
    kit.partBatch();
    expect(kit.departures.mayLeave(queue)).toBe(false);
  });

  test("are batched less often with every further failure", () => {
    const kit = new Kit(16);
    const aloneBetween: number[] = [];
    for (let times = 0; times < 9; times++) {
      let alone = 0;
      for (kit.flush(); kit.batches.length === 0; kit.flush()) {
        alone += kit.alone.length;
        kit.settleAlone(Number.POSITIVE_INFINITY);
        kit.add(50);
      }
      aloneBetween.push(alone);
      kit.partBatch();
      kit.settleAlone(Number.POSITIVE_INFINITY);
    }
    const [, first = 0, second = 0] = aloneBetween;
    expect(first).toBeGreaterThanOrEqual(1_000);
    expect(second).toBeGreaterThanOrEqual(2_000);
    expect(aloneBetween.at(-1)).toBeGreaterThanOrEqual(64_000);
    expect(aloneBetween.at(-1)).toBeLessThan(65_000);
  });
});
