import { describe, expect, test } from "vitest";
import { Kit } from "./together-kit.ts";

describe("live frames of a stream that accepts atomic batches", () => {
  test("are sent one by one if few frames wait", () => {
    const kit = new Kit(16);
    for (let times = 0; times < 10; times++) {
      kit.add(10);
      kit.flush();
    }
    expect(kit.underWay).toEqual({ alone: 64, batches: [] });
    kit.settleAlone(1);
    expect(kit.departures.waiting).toBe(true);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 63, batches: [36] });
  });

  test("are batched if at least 16 frames wait", () => {
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

  test("are sent one by one after a batch if few frames wait", () => {
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

  test("neither wait for nor delay background frames", () => {
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

describe("the measured speed of a stream", () => {
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

  test("is unknown at first", () => {
    const kit = new Kit();
    kit.add(200);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 64, batches: [] });
  });

  test("leads to batches of about 40 frames if each frame costs an fsync", () => {
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

  test("leads to large batches only if a frame takes little time", () => {
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

  test("stops batches for a second after one slow batch", () => {
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

  test("does not include frames that are sent alongside a batch", () => {
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

  test("leads to a batch when enough frames wait or are in flight", () => {
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
    "leads to batches even if %d frames are acknowledged at a time",
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

  test("does not include the time in which the stream is almost idle", () => {
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

  test("is measured again periodically", () => {
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
    expect(batches).toBeGreaterThan(240);
    expect(batches).toBeLessThan(260);
    kit.settleAlone(Number.POSITIVE_INFINITY);
    measureAlone(kit, 0.01);
    kit.add(60);
    kit.flush();
    expect(kit.underWay).toEqual({ alone: 60, batches: [] });
  });
});

test("a stream without atomic batches receives single frames", () => {
  const kit = new Kit(16);
  kit.stream.takesAtomicBatches = false;
  kit.add(200);
  kit.flush();
  expect(kit.underWay).toEqual({ alone: 64, batches: [] });
});

test("a stream that stops accepting batches receives the frames one by one", () => {
  const kit = new Kit(16);
  kit.add(20);
  kit.flush();
  kit.add(5);
  kit.stream.takesAtomicBatches = false;
  expect(kit.departures.waiting).toBe(true);
  kit.flush();
  expect(kit.underWay).toEqual({ alone: 5, batches: [20] });
});
