import fc from "fast-check";
import { expect, test } from "vitest";
import { msOfNanos, msOfTime } from "../../../src/readers/stream/frame.ts";

test("the two time formats of NATS give the same millisecond", () => {
  const ms = fc.integer({ min: Date.UTC(2024), max: Date.UTC(2100) });
  const rest = fc.oneof(fc.constantFrom(0, 1, 999_999), fc.integer({ min: 0, max: 999_999 }));
  const check = fc.property(ms, rest, (ms, rest) => {
    const nanos = BigInt(ms) * 1_000_000n + BigInt(rest);
    const seconds = new Date(ms).toISOString().slice(0, 19);
    const fraction = String(nanos % 1_000_000_000n)
      .padStart(9, "0")
      .replace(/0+$/, "");
    const time = `${seconds}${fraction === "" ? "" : `.${fraction}`}Z`;
    expect(msOfNanos(String(nanos))).toBe(ms);
    expect(msOfTime(time)).toBe(ms);
  });
  fc.assert(check);
});
