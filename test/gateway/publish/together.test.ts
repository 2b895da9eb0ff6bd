// When live frames are sent together and when alone. These rules only affect throughput; none may
// block a frame for good.

import { describe, expect, test } from "vitest";
import { Kit } from "./together-kit.ts";

describe("live frames of a stream that takes atomic batches", () => {
  test("are sent alone while they are few, up to the window", () => {
    const kit = new Kit(16);
    for (let times = 0; times < 10; times++) {
      kit.add(10);
      kit.flush();
    }
    // From 16 waiting on they would be sent together, but the window has no room for that.
    expect(kit.underWay).toEqual({ alone: 64, batches: [] });
    kit.settleAlone(1);
    expect(kit.departures.waiting).toBe(true);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 63, batches: [36] });
  });

  test("are sent together from 16 waiting on, one batch at a time", () => {
    const kit = new Kit(16);
    kit.add(16);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 0, batches: [16] });
    kit.add(100);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 0, batches: [16] });
    kit.settleBatch();
    expect(kit.departures.waiting).toBe(true);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 0, batches: [100] });
  });

  test("are sent alone, however few, once the previous batch is acknowledged", () => {
    const kit = new Kit(16);
    kit.add(20);
    kit.flush();
    kit.add(1);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 0, batches: [20] });
    kit.settleBatch();
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 1, batches: [] });
  });

  test("are not delayed by background frames, nor delay them", () => {
    const kit = new Kit(16);
    kit.add(30, true);
    kit.flush();
    kit.add(3);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 33, batches: [] });
    kit.add(20);
    kit.flush();
    kit.add(5, true);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 38, batches: [20] });
  });
});

describe("the speed of batches is measured", () => {
  /** Sends frames alone until the measured time per frame is `msEach`. */
  function measureAlone(kit: Kit, msEach: number): void {
    const frames = Math.max(32, Math.ceil(5 / msEach));
    for (let settled = 0; settled < frames; settled++) {
      kit.add(64 - kit.alone.length);
      kit.flush();
      kit.nowMs += msEach;
      kit.settleAlone(1);
    }
    while (kit.alone.length > 0) {
      kit.nowMs += msEach;
      kit.settleAlone(1);
    }
  }

  test("frames are sent alone until the first measurement", () => {
    const kit = new Kit();
    kit.add(200);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 64, batches: [] });
  });

  test("some forty are sent together if each frame is an fsync", () => {
    const kit = new Kit();
    measureAlone(kit, 0.24);
    kit.add(16);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 16, batches: [] });
    kit.settleAlone(16);
    kit.add(40);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 0, batches: [40] });
  });

  test("only many are sent together if a frame takes little, and more in a slower batch", () => {
    const kit = new Kit();
    measureAlone(kit, 0.05);
    kit.add(50);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 50, batches: [] });
    kit.settleAlone(50);
    for (let batches = 0; batches < 20; batches++) {
      kit.add(1_000);
      kit.flush();
      expect(kit.underWay).toEqual({ alone: 0, batches: [1_000] });
      kit.nowMs += 12;
      kit.settleBatch();
    }
    kit.add(400);
    kit.flush();
    expect(kit.underWay.batches).toEqual([]);
  });

  test("batches are tried again a second after one slow batch", () => {
    const kit = new Kit();
    measureAlone(kit, 0.24);
    for (const tookMs of [400, 1_500]) {
      kit.add(200);
      kit.flush();
      expect(kit.underWay).toEqual({ alone: 0, batches: [200] });
      kit.nowMs += tookMs;
      kit.settleBatch();
      kit.nowMs += 1_000;
      measureAlone(kit, 0.24);
    }
    kit.add(200);
    kit.flush();
    expect(kit.underWay.batches).toEqual([200]);
  });

  test("frames sent alongside a batch are not measured, because they wait for it", () => {
    const kit = new Kit();
    measureAlone(kit, 0.05);
    kit.add(1_000);
    kit.flush();
    kit.leaveBeside(64);
    for (let settled = 0; settled < 45; settled++) {
      kit.nowMs += 0.12;
      kit.settleAlone(1);
    }
    kit.settleBatch();
    kit.settleAlone(Number.POSITIVE_INFINITY);
    kit.add(160);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 64, batches: [] });
  });

  test("frames in flight alone count with those that wait", () => {
    const kit = new Kit();
    measureAlone(kit, 0.1);
    kit.add(30);
    kit.flush();
    kit.add(15);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 45, batches: [] });
    kit.add(40);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 45, batches: [40] });
  });

  test.each([8, 16, 32, 64])(
    "also if %d are acknowledged at a time, which is all the window has",
    (window) => {
      const kit = new Kit(undefined, window);
      for (let settled = 0; settled < 64; settled += window) {
        kit.add(window);
        kit.flush();
        expect(kit.underWay).toEqual({ alone: window, batches: [] });
        kit.nowMs += 0.24 * window;
        kit.settleAlone(window);
      }
      kit.add(48);
      kit.flush();
      expect(kit.underWay).toEqual({ alone: 0, batches: [48] });
    },
  );

  test("the time in which the stream has little to do does not count", () => {
    const kit = new Kit();
    for (let times = 0; times < 4; times++) {
      kit.add(32);
      kit.flush();
      kit.nowMs += 0.05 * 32;
      kit.settleAlone(32);
      kit.nowMs += 1_000;
    }
    kit.add(60);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 60, batches: [] });
  });

  test("the speed is measured again now and then", () => {
    const kit = new Kit();
    measureAlone(kit, 0.24);
    let batches = 0;
    for (; batches < 1_000; batches++) {
      kit.add(40);
      kit.flush();
      if (kit.batches.length === 0) break;
      kit.nowMs += 4;
      kit.settleBatch();
    }
    // After a second.
    expect(batches).toBeGreaterThan(240);
    expect(batches).toBeLessThan(260);
    kit.settleAlone(Number.POSITIVE_INFINITY);
    measureAlone(kit, 0.01);
    kit.add(60);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 60, batches: [] });
  });
});

test("a stream that takes no batches sends frames alone, up to the window", () => {
  const kit = new Kit(16);
  kit.stream.takesAtomicBatches = false;
  kit.add(200);
  kit.flush();
  expect(kit.underWay).toEqual({ alone: 64, batches: [] });
});

test("a stream that no longer takes batches sends what waited for one", () => {
  const kit = new Kit(16);
  kit.add(20);
  kit.flush();
  kit.add(5);
  kit.stream.takesAtomicBatches = false;
  expect(kit.departures.waiting).toBe(true);
  kit.flush();
  expect(kit.underWay).toEqual({ alone: 5, batches: [20] });
});
