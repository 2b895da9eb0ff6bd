import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  storedMsMax,
  storedMsMin,
  storedTimestampBytes,
  timestampMs,
  timestampTokenMs,
  writeTimestamp,
} from "../../src/records/timestamp.ts";

function storedTimestamp(text: string): string | undefined {
  const ms = timestampMs(Buffer.from(`"${text}"`), 1, 1 + Buffer.byteLength(text));
  return Number.isNaN(ms) ? undefined : written(ms);
}

/** Date.parse reads 2026-02-30 as 2026-03-02, and 24:00 as the next day. */
function isMoment(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString() === text;
}

function written(ms: number): string {
  const target = Buffer.alloc(storedTimestampBytes + 2, "#");
  expect(writeTimestamp(target, 1, ms)).toBe(1 + storedTimestampBytes);
  const text = target.toString("latin1");
  expect(text).toMatch(/^#.*#$/);
  return text.slice(1, -1);
}

describe("ISO 8601", () => {
  describe("a timestamp", () => {
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
    ])("is invalid: %j", (text) => {
      expect(storedTimestamp(text)).toBeUndefined();
      const token = Buffer.from(JSON.stringify(text));
      expect(timestampTokenMs(token, 0, token.length)).toBeNaN();
    });

    test("is read and written as Date does at any time", () => {
      const moments = fc.oneof(
        fc.integer({ min: storedMsMin, max: storedMsMax }),
        fc.constantFrom(
          storedMsMin,
          storedMsMax,
          -1,
          0,
          951_782_399_999,
          951_782_400_000,
          -62_135_596_800_000,
        ),
      );
      fc.assert(
        fc.property(moments, (ms) => {
          const text = new Date(ms).toISOString();
          expect(written(ms)).toBe(text);
          expect(storedTimestamp(text)).toBe(text);
        }),
        { numRuns: 1_500 },
      );
    });

    test("is read and written as Date does on every day", () => {
      const texts: string[] = [];
      for (let day = Date.UTC(1999, 11, 31); day < Date.UTC(2400, 2, 2); day += 86_400_000) {
        texts.push(new Date(day + 43_200_001).toISOString());
      }
      for (let year = 0; year <= 9_999; year++) {
        for (const date of ["01-01", "02-28", "03-01", "12-31"]) {
          texts.push(`${String(year).padStart(4, "0")}-${date}T23:59:59.999Z`);
        }
      }
      const target = Buffer.alloc(storedTimestampBytes);
      const wrong = texts.filter((text) => {
        const ms = timestampMs(Buffer.from(text), 0, text.length);
        writeTimestamp(target, 0, ms);
        return ms !== Date.parse(text) || target.toString("latin1") !== text;
      });
      expect(wrong).toEqual([]);
    });

    test("with one character changed agrees with Date.parse", () => {
      const texts = fc
        .tuple(
          fc.date({ noInvalidDate: true }),
          fc.nat(23),
          fc.constantFrom(..."0123456789-:.TZ /+"),
        )
        .map(([moment, at, character]) => {
          const text = moment.toISOString().slice(-24);
          return text.slice(0, at) + character + text.slice(at + 1);
        });
      fc.assert(
        fc.property(texts, (text) => {
          if (storedTimestamp(text) === text) expect(new Date(text).toISOString()).toBe(text);
          else if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text))
            expect(isMoment(text)).toBe(false);
        }),
        { numRuns: 800 },
      );
    });

    test("is converted to UTC by its offset", () => {
      fc.assert(
        fc.property(fc.integer({ min: -1439, max: 1439 }), (minutes) => {
          const sign = minutes < 0 ? "-" : "+";
          const pad = (value: number) => String(value).padStart(2, "0");
          const zone = `${sign}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
          const stored = storedTimestamp(`2026-06-15T12:00:00.000${zone}`);
          expect(Date.parse(stored ?? "")).toBe(
            Date.parse("2026-06-15T12:00:00.000Z") - minutes * 60_000,
          );
        }),
      );
    });
  });
});
