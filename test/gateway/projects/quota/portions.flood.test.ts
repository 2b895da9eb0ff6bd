import { beforeEach, describe, expect, test } from "vitest";
import { Meter, portionMs, refusalsOfFlood } from "../../../../src/gateway/projects/quota/meter.ts";
import { costOf, refusalOf, waitMsOf } from "../../../kit/cost-of.ts";

let nowMs: number;
let meter: Meter;

beforeEach(() => {
  nowMs = 1_000_000;
  meter = new Meter(() => nowMs);
});

function flood(forMs: number, requestsAMs: number): number[] {
  return Array.from({ length: forMs }, () => {
    nowMs++;
    let admitted = 0;
    for (let count = 0; count < requestsAMs; count++)
      if (waitMsOf(meter, costOf(1, 100)) === 0) admitted++;
    return admitted;
  });
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

describe("a project that exceeds its quota", () => {
  test.each([
    { eventsPerSecond: 500, burstSeconds: 0.2 },
    { bytesPerSecond: 50_000, burstSeconds: 0.2 },
  ])("gets its full quota in few large portions: %o", (quota) => {
    meter.setQuota(quota);
    flood(5_000, 5);
    const admitted = flood(10_000, 5);
    expect(sumOf(admitted)).toBeGreaterThanOrEqual(4_950);
    expect(sumOf(admitted)).toBeLessThanOrEqual(5_050);
    // Without portions, admissions would be spread over 5,000 milliseconds.
    expect(admitted.filter((events) => events > 0).length).toBeLessThan(2_000);
  });

  test("waits at most one portion after the flood", () => {
    meter.setQuota({ eventsPerSecond: 500, burstSeconds: 0.2 });
    flood(5_000, 5);
    const waitMs = waitMsOf(meter, costOf(1, 100));
    expect(waitMs).toBeGreaterThan(1);
    expect(waitMs).toBeLessThanOrEqual(portionMs);
    nowMs += waitMs;
    expect(waitMsOf(meter, costOf(1, 100))).toBe(0);
  });

  test("gets an error that names the exceeded limit", () => {
    meter.setQuota({ eventsPerSecond: 1e6, bytesPerSecond: 50_000, burstSeconds: 0.2 });
    flood(5_000, 5);
    nowMs += 2 * portionMs;
    flood(portionMs - 2, 5);
    expect(refusalOf(meter, costOf(1, 1))).toMatchObject({ what: "bytes", perSecond: 50_000 });
  });

  test("uses a new quota immediately", () => {
    meter.setQuota({ eventsPerSecond: 500, burstSeconds: 0.2 });
    flood(5_000, 5);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
    meter.setQuota({ eventsPerSecond: 1_000, burstSeconds: 0.2 });
    nowMs++;
    expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
  });
});

describe("a client that does not flood", () => {
  test("is admitted as soon as the quota allows one event", () => {
    meter.setQuota({ eventsPerSecond: 1_000, burstSeconds: 0.1 });
    for (let count = 0; count < 100; count++) waitMsOf(meter, costOf(1, 1));
    for (let round = 0; round < 100; round++) {
      for (let count = 1; count < refusalsOfFlood; count++)
        expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
      nowMs += portionMs;
      for (let count = 0; count < portionMs; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    }
  });

  test("gets small requests admitted while its large requests are rejected", () => {
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 1 });
    waitMsOf(meter, costOf(50, 1));
    for (let count = 0; count < 10 * refusalsOfFlood; count++)
      expect(waitMsOf(meter, costOf(200, 1))).toBeGreaterThan(0);
    for (let count = 0; count < 50; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
  });
});
