import { describe, expect, test } from "vitest";
import { expansionOf, overCaps, refusedByMeter } from "../../../src/gateway/intake/request-caps.ts";
import { Meter } from "../../../src/gateway/projects/quota/meter.ts";
import { expansionBytesAMinute } from "../../../src/platform/base/errors.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { Header, ScanStatus } from "../../../src/records/table.ts";
import { costOf, refusalOf } from "../../kit/cost-of.ts";

const caps = { eventsMax: 500_000, expansionMax: 256 };

type Given = [events: number, bytes: number, bytesArrived: number, meter?: Meter];

function problemOf(...[events, bytes, bytesArrived, meter = new Meter(() => 0)]: Given) {
  const project = { id: "a", name: "a", keys: [], enabled: true, meter };
  const table = new Uint32Array(Header.Words);
  const cost = costOf(events, bytes);
  const work = { cost, exchange: { bytesArrived }, project, table, additions: undefined };
  cost.expansion = expansionOf(work, caps);
  const problem = overCaps(work, caps);
  if (problem !== undefined) return problem;
  const refusal = refusalOf(meter, cost);
  return refusal && refusedByMeter(refusal, work, caps);
}

function expansionOfBatch(
  event: (index: number) => string,
  given: { bytesArrived: number; lib?: string },
): number {
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
  return expansionOf(work, caps);
}

function codeOf(...given: Given): string | undefined {
  return problemOf(...given)?.code;
}

describe("the size limit of a request", () => {
  test("includes invalid events", () => {
    expect(codeOf(500_000, 1_500_000_000, 1_500_000_000)).toBeUndefined();
    expect(codeOf(500_001, 1_500_003, 1_500_003)).toBe("too_many_events");
  });

  test("rejects identical events that expand beyond the allowance", () => {
    // The first body has 252 kB and expands to 100 MiB of events of 29 bytes. The others are parts
    // of it.
    expect(codeOf(3_460_000, 100_000_000, 252_000)).toBe("too_many_events");
    expect(codeOf(490_000, 14_210_000, 35_000)).toBe("expands_too_far");
    expect(codeOf(200_000, 5_800_000, 15_000)).toBeUndefined();
    const events = Math.floor((expansionBytesAMinute + 256 * 100) / (29 + 256));
    expect(codeOf(events, events * 29, 100)).toBeUndefined();
    expect(codeOf(events + 100, (events + 100) * 29, 100)).toBe("expands_too_far");
  });

  test("counts only expansion beyond 256 times the bytes sent", () => {
    const meter = new Meter(() => 0);
    // 300 requests of 1 MiB in one minute: 44 MiB more than 256 times the bytes sent.
    for (let sent = 0; sent < 300; sent++)
      expect(codeOf(100, 1_048_576 - 100 * 256, 1_048_576 / 300, meter)).toBeUndefined();
    // At exactly 256 times, no byte counts.
    for (let sent = 0; sent < 1_000; sent++)
      expect(codeOf(100, 1_048_576 - 100 * 256, 4_096, meter)).toBeUndefined();
  });

  test("limits the expansion of all requests of a project per minute", () => {
    let nowMs = 0;
    const meter = new Meter(() => nowMs);
    const send = () => codeOf(8_000, 232_000, 74, meter);
    const passed = (tries: number) =>
      Array.from({ length: tries }, send).filter((code) => code === undefined).length;
    expect(passed(1_000)).toBe(29);
    const refused = problemOf(8_000, 232_000, 74, meter);
    expect(refused?.code).toBe("project_full");
    nowMs += refused?.retryAfterMs ?? 0;
    expect(passed(1_000)).toBe(1);
    nowMs += 60_000;
    expect(passed(1_000)).toBe(29);
    expect(codeOf(1_000, 290_000, 290_000, meter)).toBeUndefined();
  });

  const filler = "y".repeat(600);
  const inside = (name: string) => () =>
    `{"distinct_id":"b","properties":{${name}:{"x":"${filler}"}}}`;

  test("includes repeated bytes and bytes that the gateway adds", () => {
    // A record has about 650 bytes of its event and 256 additional bytes. So 20,000 records are 256
    // times as long as 70,800 bytes sent.
    const bytesArrived = 75_000;
    expect(expansionOfBatch(inside('"plain"'), { bytesArrived })).toBe(0);
    const twice = expansionOfBatch(inside('"$set"'), { bytesArrived });
    expect(twice).toBeGreaterThan(20_000 * 500);
    expect(twice).toBeLessThan(20_000 * 700);
    expect(expansionOfBatch(inside('"$set_once"'), { bytesArrived })).toBeGreaterThan(10_000_000);
    expect(expansionOfBatch(inside('"$s\\u0065t"'), { bytesArrived })).toBeGreaterThan(10_000_000);
    expect(expansionOfBatch(inside('"$set"'), { bytesArrived: 2 * bytesArrived })).toBe(0);
    const lib = "x".repeat(400);
    expect(expansionOfBatch(inside('"plain"'), { bytesArrived, lib })).toBeGreaterThan(5_000_000);
  });

  test.each([
    ["of the smallest events, uncompressed", 500_000, 14_500_000, 1],
    ["of 19 MB, uncompressed", 45_000, 19_000_000, 1],
    ["that compresses 20 times", 260_000, 104_000_000, 20],
    ["that compresses 100 times", 260_000, 104_000_000, 100],
  ])("accepts a batch %s", (_, events, bytes, ratio) => {
    expect(codeOf(events, bytes, bytes / ratio)).toBeUndefined();
  });

  test("is the project's quota if the quota allows less per request", () => {
    const meter = new Meter(() => 0);
    meter.setQuota({ eventsPerSecond: 1_000, bytesPerSecond: 1_000_000, burstSeconds: 1 });
    expect(codeOf(2_000, 2_000_000, 2_000_000, meter)).toBeUndefined();
    expect(codeOf(2_001, 2_000_000, 2_000_000, meter)).toBe("too_many_events");
    expect(codeOf(1, 2_000_001, 2_000_001, meter)).toBe("body_too_large");
    meter.setQuota({ eventsPerSecond: 0.5, burstSeconds: 1 });
    expect(problemOf(201, 1, 1, meter)?.detail).toBe(
      "The request has 201 events, more than the 200 that the project's quota of 0.5 events a second allows in one request",
    );
  });
});
