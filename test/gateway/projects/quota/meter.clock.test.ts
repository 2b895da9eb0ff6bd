import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { Meter } from "../../../../src/gateway/projects/quota/meter.ts";
import { costOf, refusalOf, takenOf, waitMsOf } from "../../../kit/cost-of.ts";

let nowMs: number;
let meter: Meter;

beforeEach(() => {
  nowMs = 1_000_000;
  meter = new Meter(() => nowMs);
});

function offer(forMs: number, everyMs: number, events: number, bytes = 0): number {
  let admitted = 0;
  for (const untilMs = nowMs + forMs; nowMs < untilMs; nowMs += everyMs) {
    if (waitMsOf(meter, costOf(events, bytes)) === 0) admitted += events;
  }
  return admitted;
}

describe("a quota meter", () => {
  test("admits everything without a quota", () => {
    meter = new Meter(() => {
      throw new Error("read");
    });
    meter.setQuota(undefined);
    expect(waitMsOf(meter, costOf(1e9, 1e12))).toBe(0);
  });

  test.each([1, 7, 100, 2_000])(
    "admits the configured rate for requests of %i events",
    (events) => {
      meter.setQuota({ eventsPerSecond: 1_000, burstSeconds: 2 });
      const admitted = offer(600_000, 1, events);
      // The burst, the rate for 600 s, and one request that may exceed them.
      expect(admitted).toBeGreaterThanOrEqual(600_000);
      expect(admitted).toBeLessThanOrEqual(602_000 + events);
    },
  );

  const anyLimit = fc.record({
    eventsPerSecond: fc.constantFrom(0.1, 3, 10, 1_000, 33_333.3),
    bytesPerSecond: fc.constantFrom(1, 500, 40_000, 2e6),
    burstSeconds: fc.constantFrom(0.01, 1, 10, 300),
  });

  test("admits at most the rate plus one burst and its debt", () => {
    const anyRequests = fc.array(
      fc.record({
        everyMs: fc.constantFrom(1, 20, 999, 30_000),
        events: fc.constantFrom(0, 1, 100, 200, 1_000, 100_000),
        bytes: fc.constantFrom(2, 1_000, 65_536, 131_072, 1_048_576),
        times: fc.integer({ min: 1, max: 300 }),
      }),
      { minLength: 1, maxLength: 8 },
    );
    const property = fc.property(anyLimit, anyRequests, (limits, requests) => {
      nowMs = 0;
      meter = new Meter(() => nowMs);
      meter.setQuota(limits);
      const passed = { events: 0, bytes: 0 };
      while (nowMs < 600_000) {
        for (const { everyMs, events, bytes, times } of requests) {
          for (let count = 0; count < times && nowMs < 600_000; count++) {
            const cost = costOf(events, bytes);
            nowMs += everyMs;
            if (waitMsOf(meter, cost) > 0) continue;
            passed.events += events;
            passed.bytes += bytes;
          }
        }
      }
      const { eventsPerSecond, bytesPerSecond, burstSeconds } = limits;
      const bound = (rate: number, least: number) =>
        (nowMs / 1_000) * rate + 2 * Math.max(least, rate * burstSeconds) + 1;
      expect(passed.events).toBeLessThanOrEqual(bound(eventsPerSecond, 100));
      expect(passed.bytes).toBeLessThanOrEqual(bound(bytesPerSecond, 65_536));
    });
    fc.assert(property, { numRuns: 60 });
  });

  test("always admits one batch of an SDK", () => {
    const sent = fc.record({
      events: fc.integer({ min: 1, max: 200_000 }),
      bytes: fc.integer({ min: 2, max: 4e6 }),
    });
    const property = fc.property(
      anyLimit,
      fc.array(sent, { maxLength: 20 }),
      (limits, requests) => {
        meter = new Meter(() => nowMs);
        meter.setQuota(limits);
        for (const { events, bytes } of requests) {
          const cost = costOf(events, bytes);
          waitMsOf(meter, cost);
        }
        const { eventsPerSecond, bytesPerSecond, burstSeconds } = limits;
        const burstMs =
          1_000 * Math.max(100 / eventsPerSecond, 65_536 / bytesPerSecond, burstSeconds);
        const batch = costOf(100, 65_536);
        expect(waitMsOf(meter, batch)).toBeLessThanOrEqual(burstMs + 1);
        nowMs += burstMs + 1;
        expect(waitMsOf(meter, batch)).toBe(0);
      },
    );
    fc.assert(property);
  });

  test("admits exactly a burst after a pause of any length", () => {
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 5 });
    for (const pauseMs of [0, 5_000, 3_600_000]) {
      nowMs += pauseMs;
      for (let count = 0; count < 500; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
      expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
    }
  });

  test("reports the limit that takes longer to recover", () => {
    meter.setQuota({ eventsPerSecond: 100, bytesPerSecond: 65_536, burstSeconds: 1 });
    expect(waitMsOf(meter, costOf(100, 1))).toBe(0);
    expect(refusalOf(meter, costOf(1, 1))).toMatchObject({ what: "events", perSecond: 100 });
    nowMs += 10;
    expect(waitMsOf(meter, costOf(1, 131_000))).toBe(0);
    expect(refusalOf(meter, costOf(1, 1))).toMatchObject({ what: "bytes", perSecond: 65_536 });
    meter.setQuota({ bytesPerSecond: 65_536, burstSeconds: 1 });
    expect(refusalOf(meter, costOf(1, 1))).toMatchObject({ what: "bytes", perSecond: 65_536 });
  });

  test("rejects requests after a large request until the debt is paid", () => {
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 1 });
    expect(waitMsOf(meter, costOf(150, 1))).toBe(0);
    const waitMs = waitMsOf(meter, costOf(1, 1));
    expect(waitMs).toBeCloseTo(500);
    nowMs += waitMs;
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
    nowMs += 1;
    expect(waitMsOf(meter, costOf(100, 1))).toBe(0);
  });

  test("admits a request of two bursts while the debt is below a burst", () => {
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 1 });
    expect(waitMsOf(meter, costOf(200, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeCloseTo(1_000);
    nowMs += 1_400;
    const waitMs = waitMsOf(meter, costOf(150, 1));
    expect(waitMs).toBeCloseTo(100);
    nowMs += waitMs + 0.001;
    expect(waitMsOf(meter, costOf(150, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeCloseTo(1_000, 1);
  });

  test.each([1_000, 20_000, 33_000_000])(
    "blocks a project at most for a burst's time after %i events",
    (events) => {
      meter.setQuota({ eventsPerSecond: 1_000, bytesPerSecond: 10_000, burstSeconds: 10 });
      for (let count = 0; count < 3; count++) waitMsOf(meter, costOf(events, events * 3));
      expect(waitMsOf(meter, costOf(1, 1))).toBeLessThanOrEqual(10_000);
      nowMs += 10_001;
      expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    },
  );

  test("rejects a request above two bursts as too large", () => {
    meter.setQuota({ eventsPerSecond: 1_000, bytesPerSecond: 1_000_000, burstSeconds: 2 });
    expect(refusalOf(meter, costOf(4_001, 1))).toEqual({
      what: "events",
      waitMs: Number.POSITIVE_INFINITY,
      perSecond: 1_000,
      requestMax: 4_000,
    });
    expect(refusalOf(meter, costOf(1, 4_000_001))).toEqual({
      what: "bytes",
      waitMs: Number.POSITIVE_INFINITY,
      perSecond: 1_000_000,
      requestMax: 4_000_000,
    });
    expect(meter.counts.rateLimitedRequests).toBe(0);
    expect(refusalOf(meter, costOf(4_000, 4_000_000))).toBeUndefined();
    expect(refusalOf(meter, costOf(1, 1))?.waitMs).toBeCloseTo(2_000);
    meter.setQuota({ eventsPerSecond: 0.1, bytesPerSecond: 1, burstSeconds: 1 });
    expect(refusalOf(meter, costOf(201, 1))).toMatchObject({
      what: "events",
      perSecond: 0.1,
      requestMax: 200,
    });
    expect(refusalOf(meter, costOf(1, 131_073))).toMatchObject({ what: "bytes", perSecond: 1 });
    expect(waitMsOf(meter, costOf(200, 131_072))).toBeLessThan(Number.POSITIVE_INFINITY);
    meter.setQuota(undefined);
    expect(refusalOf(meter, costOf(1e9, 1e12))).toBeUndefined();
  });

  test.each([100, 200])("charges %i dropped events for their bytes and for one event", (events) => {
    meter.setQuota({ eventsPerSecond: 100, bytesPerSecond: 100_000, burstSeconds: 1 });
    takenOf(meter, costOf(events, 50_000)).countDropped(events);
    for (let count = 0; count < 99; count++) expect(waitMsOf(meter, costOf(1, 0))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 0))).toBeGreaterThan(0);
    nowMs += 100;
    expect(waitMsOf(meter, costOf(1, 60_001))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
  });

  test("enforces both an event rate and a byte rate", () => {
    meter.setQuota({ eventsPerSecond: 1_000, bytesPerSecond: 10_000, burstSeconds: 10 });
    const bytesBound = offer(100_000, 1, 1, 100);
    expect(bytesBound).toBeGreaterThanOrEqual(10_000);
    expect(bytesBound).toBeLessThanOrEqual(11_001);
    nowMs += 10_000;
    const eventsBound = offer(100_000, 1, 10, 10);
    expect(eventsBound).toBeGreaterThanOrEqual(100_000);
    expect(eventsBound).toBeLessThanOrEqual(110_010);
  });

  test("counts a request without events as one event", () => {
    meter.setQuota({ eventsPerSecond: 10, burstSeconds: 10 });
    for (let count = 0; count < 100; count++) expect(waitMsOf(meter, costOf(0, 2))).toBe(0);
    expect(waitMsOf(meter, costOf(0, 2))).toBeGreaterThan(0);
  });

  test("admits no more than a burst while the clock stops", () => {
    meter.setQuota({ eventsPerSecond: 10, burstSeconds: 10 });
    for (let count = 0; count < 100; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
    nowMs += 200;
    expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    nowMs += 1e12;
    for (let count = 0; count < 100; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
  });

  test("keeps its debt if the quota changes", () => {
    const limits = { eventsPerSecond: 10, burstSeconds: 10 };
    meter.setQuota(limits);
    expect(waitMsOf(meter, costOf(200, 1))).toBe(0);
    const owedMs = waitMsOf(meter, costOf(1, 1));
    meter.setQuota({ ...limits });
    expect(waitMsOf(meter, costOf(1, 1))).toBe(owedMs);
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 60 });
    expect(waitMsOf(meter, costOf(1, 1))).toBeCloseTo(owedMs / 10);
    meter.setQuota(undefined);
    expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 60 });
    meter.setQuota({ eventsPerSecond: 1, burstSeconds: 2 });
    expect(waitMsOf(meter, costOf(100, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
  });

  test("does not charge rejected requests to the quota", () => {
    meter.setQuota({ eventsPerSecond: 1, burstSeconds: 1 });
    waitMsOf(meter, costOf(105, 100));
    waitMsOf(meter, costOf(7, 200));
    waitMsOf(meter, costOf(0, 20));
    meter.countStored(4, 900);
    meter.countUnknown(3);
    meter.setQuota(undefined);
    takenOf(meter, costOf(1, 0)).countDropped(1);
    expect(meter.counts).toEqual({
      accepted: 4,
      storedBytes: 900,
      unknown: 3,
      dropped: 1,
      rateLimitedRequests: 2,
      rateLimitedEvents: 7,
      rateLimitedBytes: 220,
    });
  });
});
