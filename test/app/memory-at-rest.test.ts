import { setTimeout as delay } from "node:timers/promises";
import { getHeapSpaceStatistics } from "node:v8";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { garbageCollector, keepMemoryAtRest, loopWorkShare } from "../../src/app/memory-at-rest.ts";
import { loadAddon } from "../../src/records/native.ts";

describe("once the load is over", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  function start(): {
    readonly state: { inHand: number; share: number; collecting: number };
    readonly trim: ReturnType<typeof vi.fn>;
    readonly collect: ReturnType<typeof vi.fn>;
    readonly end: () => void;
  } {
    const state = { inHand: 0, share: 0, collecting: 0 };
    const [trim, collect] = [vi.fn(), vi.fn()];
    const end = keepMemoryAtRest({
      ...{ trim: () => void trim(), collect: () => void collect() },
      bytesInHand: () => state.inHand,
      workShare() {
        const share = state.share + state.collecting;
        state.collecting = 0;
        return share;
      },
    });
    return { state, trim, collect, end };
  }

  test("memory is given back while nothing is in hand, until the end", () => {
    const { state, trim, end } = start();
    state.inHand = 1;
    vi.advanceTimersByTime(30_000);
    expect(trim).not.toHaveBeenCalled();
    state.inHand = 0;
    vi.advanceTimersByTime(10_000);
    expect(trim).toHaveBeenCalledOnce();
    end();
    vi.advanceTimersByTime(30_000);
    expect(trim).toHaveBeenCalledOnce();
  });

  test("garbage is collected once, before that", () => {
    const { collect, trim, end } = start();
    vi.advanceTimersByTime(60_000);
    expect(collect).toHaveBeenCalledOnce();
    expect(collect.mock.invocationCallOrder[0]).toBeLessThan(trim.mock.invocationCallOrder[0]!);
    end();
  });

  test("what a collection takes is no work", () => {
    const { state, collect, end } = start();
    collect.mockImplementation(() => {
      state.collecting = 0.03;
    });
    vi.advanceTimersByTime(60_000);
    expect(collect).toHaveBeenCalledOnce();
    end();
  });

  test("and again after more work, never while there is some", () => {
    const { state, collect, end } = start();
    vi.advanceTimersByTime(10_000);
    state.share = 0.03;
    vi.advanceTimersByTime(60_000);
    expect(collect).toHaveBeenCalledOnce();
    state.share = 0.005;
    state.inHand = 1;
    vi.advanceTimersByTime(60_000);
    expect(collect).toHaveBeenCalledOnce();
    state.inHand = 0;
    vi.advanceTimersByTime(60_000);
    expect(collect).toHaveBeenCalledTimes(2);
    end();
  });
});

test("the addon gives memory back", () => {
  const blocks = Array.from({ length: 64 }, () => Buffer.alloc(1_000_000, 1));
  expect(blocks).toHaveLength(64);
  expect(loadAddon().trimMemory()).toBeUndefined();
});

function youngGenerationBytes(): number {
  return getHeapSpaceStatistics().find((space) => space.space_name === "new_space")!.space_size;
}

test("a collection gives back what the young generation has grown by", () => {
  const collect = garbageCollector();
  const kept: unknown[] = [];
  for (let made = 0; made < 2_000_000; made++) kept[made % 100_000] = { made };
  const beforeBytes = youngGenerationBytes();
  expect(beforeBytes).toBeGreaterThan(4_194_304);
  collect();
  expect(youngGenerationBytes()).toBeLessThan(beforeBytes / 2);
  expect(kept).toHaveLength(100_000);
});

test("the share of work is that since it was last asked", async () => {
  const share = loopWorkShare();
  const untilMs = performance.now() + 50;
  while (performance.now() < untilMs);
  await delay(10);
  expect(share()).toBeGreaterThan(0.5);
  await delay(200);
  expect(share()).toBeLessThan(0.5);
});
