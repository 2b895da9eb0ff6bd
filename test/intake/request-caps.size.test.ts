// A request's events and the bytes they would take in the store are bounded before any of it is
// placed; ordinary batches are not, however well they compress.

import { describe, expect, test } from "vitest";
import { expandsTooFar, expansionOf, overCaps } from "../../src/intake/request-caps.ts";
import { Meter } from "../../src/projects/quota/meter.ts";
import { createNativeScanner } from "../../src/scan/native.ts";
import { Header, ScanStatus } from "../../src/scan/table.ts";
import { costOf } from "../../testkit/cost-of.ts";

const caps = { eventsMax: 500_000, expansionMax: 256 };

type Given = [events: number, bytes: number, bytesArrived: number, meter?: Meter];

function problemOf(...[events, bytes, bytesArrived, meter = new Meter(() => 0)]: Given) {
  const project = { id: "a", name: "a", keys: [], enabled: true, meter };
  const table = new Uint32Array(Header.Words);
  const cost = costOf(events, bytes);
  const work = { cost, exchange: { bytesArrived }, project, table, additions: undefined };
  cost.expansion = expansionOf(work, caps);
  const problem = overCaps(work, caps) ?? expandsTooFar(work, caps);
  if (problem === undefined) meter.admit(cost);
  return problem;
}

/** The same of a real batch of `count` events, which came as so many bytes. */
function codeOfBatch(
  event: (index: number) => string,
  given: { bytesArrived: number; lib?: string },
): string | undefined {
  const count = 20_000;
  const body = Buffer.from(
    `{"batch":[${Array.from({ length: count }, (_, index) => event(index)).join(",")}]}`,
  );
  const scanner = createNativeScanner();
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  const project = { id: "a", name: "a", keys: [], enabled: true, meter: new Meter(() => 0) };
  const cost = costOf(count, body.length);
  const { table } = scanner;
  const work = { cost, exchange: given, project, table, additions: given.lib };
  cost.expansion = expansionOf(work, caps);
  return (overCaps(work, caps) ?? expandsTooFar(work, caps))?.code;
}

function codeOf(...given: Given): string | undefined {
  return problemOf(...given)?.code;
}

describe("a request has a size that its bytes do not show", () => {
  test("events are counted whatever becomes of them", () => {
    expect(codeOf(500_000, 1_500_000_000, 1_500_000_000)).toBeUndefined();
    expect(codeOf(500_001, 1_500_003, 1_500_003)).toBe("too_many_events");
  });

  test("equal events are refused for what they would fill, and not below the free floor", () => {
    // 252 kB that hold 100 MiB of events of 29 bytes, and a hundredth of that.
    expect(codeOf(3_460_000, 100_000_000, 252_000)).toBe("too_many_events");
    expect(codeOf(490_000, 14_210_000, 35_000)).toBe("expands_too_far");
    expect(codeOf(25_000, 725_000, 1_900)).toBeUndefined();
    const floorEvents = Math.floor(8_388_608 / (29 + 256));
    expect(codeOf(floorEvents, floorEvents * 29, 100)).toBeUndefined();
    expect(codeOf(floorEvents + 100, (floorEvents + 100) * 29, 100)).toBe("expands_too_far");
  });

  test("what expands far has so much a minute, in however many requests it comes", () => {
    let nowMs = 0;
    const meter = new Meter(() => nowMs);
    const send = () => codeOf(1_000, 29_000, 74, meter);
    const passed = (tries: number) =>
      Array.from({ length: tries }, send).filter((code) => code === undefined).length;
    expect(passed(1_000)).toBe(29);
    // It is not told that it is too large, since it may come again.
    const refused = problemOf(1_000, 29_000, 74, meter);
    expect(refused?.code).toBe("project_full");
    nowMs += refused?.retryAfterMs ?? 0;
    expect(passed(1_000)).toBe(1);
    nowMs += 60_000;
    expect(passed(1_000)).toBe(29);
    // What does not expand so far takes nothing of it, and is not refused for it.
    expect(codeOf(1_000, 290_000, 290_000, meter)).toBeUndefined();
  });

  const filler = "y".repeat(600);
  const inside = (name: string) => () =>
    `{"distinct_id":"b","properties":{${name}:{"x":"${filler}"}}}`;

  test("what would stand in a record twice counts twice, and what is added to each event counts", () => {
    // Some 650 bytes an event, and 256 for what is around it: with 20,000 of them and 256 times,
    // 70,800 bytes must have come.
    const bytesArrived = 75_000;
    expect(codeOfBatch(inside('"plain"'), { bytesArrived })).toBeUndefined();
    expect(codeOfBatch(inside('"$set"'), { bytesArrived })).toBe("expands_too_far");
    expect(codeOfBatch(inside('"$set_once"'), { bytesArrived })).toBe("expands_too_far");
    expect(codeOfBatch(inside('"$s\\u0065t"'), { bytesArrived })).toBe("expands_too_far");
    expect(codeOfBatch(inside('"$set"'), { bytesArrived: 2 * bytesArrived })).toBeUndefined();
    expect(codeOfBatch(inside('"plain"'), { bytesArrived, lib: "x".repeat(400) })).toBe(
      "expands_too_far",
    );
  });

  test.each([
    ["plain, of the smallest events", 500_000, 14_500_000, 1],
    ["plain, of 19 MB", 45_000, 19_000_000, 1],
    ["that compresses 20 times", 260_000, 104_000_000, 20],
    ["that compresses 100 times", 260_000, 104_000_000, 100],
  ])("a batch %s passes", (_, events, bytes, ratio) => {
    expect(codeOf(events, bytes, bytes / ratio)).toBeUndefined();
  });

  test("a project's limits bound a request as well", () => {
    const meter = new Meter(() => 0);
    meter.setQuota({ eventsPerSecond: 1_000, bytesPerSecond: 1_000_000, burstSeconds: 1 });
    expect(codeOf(2_000, 2_000_000, 2_000_000, meter)).toBeUndefined();
    expect(codeOf(2_001, 2_000_000, 2_000_000, meter)).toBe("too_many_events");
    expect(codeOf(1, 2_000_001, 2_000_001, meter)).toBe("body_too_large");
    meter.setQuota({ eventsPerSecond: 0.5, burstSeconds: 1 });
    expect(problemOf(201, 1, 1, meter)?.detail).toBe(
      "The request holds 201 events, and the quota of the project, 0.5 events a second, lets through 200 at once",
    );
  });
});
