// What a flooded project's quota lets through comes together, is as much as without that, and comes
// within a portion's time. Nobody else is kept waiting: not a client that is now and then over its
// quota, nor small requests behind one that is too large for the tokens there are.

import { beforeEach, describe, expect, test } from "vitest";
import { Meter } from "../../../../src/gateway/projects/quota/meter.ts";
import { portionMs, refusalsOfFlood } from "../../../../src/gateway/projects/quota/portions.ts";
import { costOf, refusalOf, waitMsOf } from "../../../kit/cost-of.ts";

let nowMs: number;
let meter: Meter;

beforeEach(() => {
  nowMs = 1_000_000;
  meter = new Meter(() => nowMs);
});

/** The events let through in each millisecond of `forMs`, of so many requests in each. */
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

describe("what a flooded project may send comes in portions", () => {
  test.each([
    { eventsPerSecond: 500, burstSeconds: 0.2 },
    { bytesPerSecond: 50_000, burstSeconds: 0.2 },
  ])("together, and as much as its quota says: %o", (quota) => {
    meter.setQuota(quota);
    flood(5_000, 5);
    const admitted = flood(10_000, 5);
    expect(sumOf(admitted)).toBeGreaterThanOrEqual(4_950);
    expect(sumOf(admitted)).toBeLessThanOrEqual(5_050);
    // One by one they would come in 5,000 of the milliseconds.
    expect(admitted.filter((events) => events > 0).length).toBeLessThan(2_000);
  });

  test("once the flood is over, the next request waits for a portion at most, and says so", () => {
    meter.setQuota({ eventsPerSecond: 500, burstSeconds: 0.2 });
    flood(5_000, 5);
    const waitMs = waitMsOf(meter, costOf(1, 100));
    expect(waitMs).toBeGreaterThan(1);
    expect(waitMs).toBeLessThanOrEqual(portionMs);
    nowMs += waitMs;
    expect(waitMsOf(meter, costOf(1, 100))).toBe(0);
  });

  test("which of two limits gathers is said while there are tokens of both", () => {
    meter.setQuota({ eventsPerSecond: 1e6, bytesPerSecond: 50_000, burstSeconds: 0.2 });
    flood(5_000, 5);
    nowMs += 2 * portionMs;
    flood(portionMs - 2, 5);
    expect(refusalOf(meter, costOf(1, 1))).toMatchObject({ what: "bytes", perSecond: 50_000 });
  });

  test("another quota counts at once", () => {
    meter.setQuota({ eventsPerSecond: 500, burstSeconds: 0.2 });
    flood(5_000, 5);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
    meter.setQuota({ eventsPerSecond: 1_000, burstSeconds: 0.2 });
    nowMs++;
    expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
  });

  test("a clock that goes back keeps nobody out for longer", () => {
    meter.setQuota({ eventsPerSecond: 500, burstSeconds: 0.2 });
    flood(5_000, 5);
    nowMs -= 500_000;
    waitMsOf(meter, costOf(1, 1));
    nowMs += portionMs;
    expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
  });
});

describe("who does not flood is let in as soon as there is a token", () => {
  test("a client with fewer refusals than a flood's", () => {
    meter.setQuota({ eventsPerSecond: 1_000, burstSeconds: 0.1 });
    for (let count = 0; count < 100; count++) waitMsOf(meter, costOf(1, 1));
    for (let round = 0; round < 100; round++) {
      for (let count = 1; count < refusalsOfFlood; count++)
        expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
      nowMs += portionMs;
      for (let count = 0; count < portionMs; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    }
  });

  test("small requests beside large ones, for which the tokens do not do", () => {
    meter.setQuota({ eventsPerSecond: 100, burstSeconds: 1 });
    waitMsOf(meter, costOf(50, 1));
    for (let count = 0; count < 10 * refusalsOfFlood; count++)
      expect(waitMsOf(meter, costOf(200, 1))).toBeGreaterThan(0);
    for (let count = 0; count < 50; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
  });
});
