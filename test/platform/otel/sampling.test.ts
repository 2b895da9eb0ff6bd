import { describe, expect, test } from "vitest";
import { parentIn, Sampling } from "../../../src/platform/otel/sampling.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const sampled = parentIn(`00-${traceId}-${spanId}-01`)!;
const unsampled = parentIn(`00-${traceId}-${spanId}-00`)!;

describe("a traceparent", () => {
  test.each([
    ["of version 00", `00-${traceId}-${spanId}-01`, 1],
    ["with flags that are not known", `00-${traceId}-${spanId}-ff`, 255],
    ["of a later version", `cc-${traceId}-${spanId}-01`, 1],
    ["of a later version with more fields", `cc-${traceId}-${spanId}-01-what-the-future`, 1],
  ])("%s is used", (_, header, traceFlags) => {
    expect(parentIn(header)).toEqual({ traceId, spanId, traceFlags });
  });

  test.each([
    ["that is empty", ""],
    ["of version ff", `ff-${traceId}-${spanId}-01`],
    ["of version 00 with more fields", `00-${traceId}-${spanId}-01-more`],
    ["with a trace id of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["with a parent id of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["in upper case", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["with a short trace id", `00-${traceId.slice(1)}-${spanId}-01`],
    ["with a long parent id", `00-${traceId}-${spanId}0-01`],
    ["without flags", `00-${traceId}-${spanId}`],
    ["with other digits", `00-${traceId}-${spanId}-0g`],
    ["of 16 kB", "0".repeat(16_000)],
    ["twice", `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ["with a line break", `00-${traceId}-${spanId}-01\r\nPenstock-Schema: 2`],
  ])("%s is ignored", (_, header) => {
    expect(parentIn(header)).toBeUndefined();
  });
});

describe("a sampler", () => {
  const drawn = { random: () => 0.2, monotonicMs: () => 0 };
  test.each([
    ["always_on", { none: true, sampled: true, unsampled: true }],
    ["always_off", { none: false, sampled: false, unsampled: false }],
    // The trace id is not among the quarter of ids that the ratio selects.
    ["traceidratio", { none: true, sampled: false, unsampled: false }],
    ["parentbased_always_on", { none: true, sampled: true, unsampled: false }],
    ["parentbased_always_off", { none: false, sampled: true, unsampled: false }],
    ["parentbased_traceidratio", { none: true, sampled: true, unsampled: false }],
  ])("%s decides with and without a traceparent", (sampler, expected) => {
    const sampling = new Sampling({ sampler, ratio: 0.25, ...drawn });
    expect({
      none: sampling.wants(undefined),
      sampled: sampling.wants(sampled),
      unsampled: sampling.wants(unsampled),
    }).toEqual(expected);
  });

  test("with a ratio samples that fraction of requests without a traceparent", () => {
    const random = [0.009, 0.01, 0.5];
    const sampling = new Sampling({
      sampler: "parentbased_traceidratio",
      ratio: 0.01,
      random: () => random.shift()!,
    });
    expect([1, 2, 3].map(() => sampling.wants(undefined))).toEqual([true, false, false]);
  });

  test("traces at most 100 requests a second", () => {
    let nowMs = 0;
    const sampling = new Sampling({
      sampler: "parentbased_traceidratio",
      ratio: 0,
      monotonicMs: () => nowMs,
    });
    const isTraced = () => sampling.wants(sampled) && sampling.takes({ hasProject: true });
    const taken = () => Array.from({ length: 150 }, isTraced).filter(Boolean);
    expect(taken()).toHaveLength(100);
    expect(sampling.limited).toBe(50);
    nowMs = 1_000;
    expect(taken()).toHaveLength(100);
  });
});
