import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isStoredTimestamp, storedTimestamp } from "../../src/events/timestamp.ts";

function isStored(text: string): boolean {
  // Something stands around the text, as in a body.
  return isStoredTimestamp(Buffer.from(`"${text}"`), 1, 1 + Buffer.byteLength(text));
}

describe("a timestamp text", () => {
  test.each([
    ["2026-01-31T23:59:59.999Z", "2026-01-31T23:59:59.999Z"],
    ["2026-01-31T23:59:59Z", "2026-01-31T23:59:59.000Z"],
    ["2026-01-31T23:59:59.5Z", "2026-01-31T23:59:59.500Z"],
    ["2026-01-31T23:59:59.123456789Z", "2026-01-31T23:59:59.123Z"],
    ["2026-01-31T23:59:59,25Z", "2026-01-31T23:59:59.250Z"],
    ["2026-01-31T23:59Z", "2026-01-31T23:59:00.000Z"],
    ["2026-01-31T23:59:59.999", "2026-01-31T23:59:59.999Z"],
    ["2026-01-31 23:59:59", "2026-01-31T23:59:59.000Z"],
    ["2026-01-31 23:59:59 +00:00", "2026-01-31T23:59:59.000Z"],
    ["2026-01-31", "2026-01-31T00:00:00.000Z"],
    ["2026-01-31T12:00:00+03:00", "2026-01-31T09:00:00.000Z"],
    ["2026-01-31T12:00:00+03", "2026-01-31T09:00:00.000Z"],
    ["2026-01-31T12:00:00-0330", "2026-01-31T15:30:00.000Z"],
    ["2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00.000Z"],
    ["2026-01-31t12:00:00z", "2026-01-31T12:00:00.000Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
    ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"],
    ["0050-06-01T00:00:00Z", "0050-06-01T00:00:00.000Z"],
  ])("%s is stored as %s", (text, stored) => {
    expect(storedTimestamp(text)).toBe(stored);
  });

  test.each([
    "",
    "now",
    "1769903999",
    "2026-13-01",
    "2026-00-10",
    "2026-02-29",
    "2023-04-31T00:00:00Z",
    "2026-01-31T24:00:00Z",
    "2026-01-31T23:60:00Z",
    "2026-01-31T23:59:61Z",
    "2026-01-31T23:59:59.Z",
    "2026-01-31T23:59:59.999Zz",
    "2026-01-31Z",
    " 2026-01-31",
    "2026-01-31T12:00:00+24:00",
    "2026-01-31T12:00:00+03:60",
    "0000-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "26-01-31",
    "2026-1-31",
    "2026-01-31T23:59:59.999Z\n",
  ])("%j names no moment", (text) => {
    expect(storedTimestamp(text)).toBeUndefined();
    expect(isStored(text)).toBe(false);
  });

  test("what Date writes is in the stored form, and stays as it is", () => {
    const moments = fc.date({
      min: new Date("0000-01-01T00:00:00Z"),
      max: new Date("9999-12-31T23:59:59.999Z"),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(moments, (moment) => {
        const text = moment.toISOString();
        expect(isStored(text)).toBe(true);
        expect(storedTimestamp(text)).toBe(text);
      }),
    );
  });

  test("the two readers agree on every text of the stored form's length, also with one character changed", () => {
    const texts = fc
      .tuple(fc.date({ noInvalidDate: true }), fc.nat(23), fc.constantFrom(..."0123456789-:.TZ /+"))
      .map(([moment, at, character]) => {
        const text = moment.toISOString().slice(-24);
        return text.slice(0, at) + character + text.slice(at + 1);
      });
    fc.assert(
      fc.property(texts, (text) => {
        expect(isStored(text)).toBe(storedTimestamp(text) === text);
      }),
      { numRuns: 2_000 },
    );
  });

  test("an offset moves the moment by that much", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1439, max: 1439 }), (minutes) => {
        const sign = minutes < 0 ? "-" : "+";
        const pad = (value: number) => String(value).padStart(2, "0");
        const zone = `${sign}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
        const stored = storedTimestamp(`2026-06-15T12:00:00.000${zone}`);
        expect(Date.parse(stored ?? "")).toBe(Date.parse("2026-06-15T12:00:00.000Z") - minutes * 60_000);
      }),
    );
  });
});
