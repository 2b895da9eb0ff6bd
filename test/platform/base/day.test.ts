import { expect, test } from "vitest";
import { dayMs, dayOf, instantMsOf, isDay } from "../../../src/platform/base/day.ts";

test("a day is valid only if it is in the calendar", () => {
  const days = new Set(
    Array.from({ length: 1_100 }, (_, nth) => dayOf(Date.UTC(2023, 11, 1) + nth * dayMs)),
  );
  for (let year = 2024; year < 2026; year++)
    for (let month = 0; month <= 13; month++)
      for (let day = 0; day <= 32; day++) {
        const [mm, dd] = [month, day].map((part) => String(part).padStart(2, "0"));
        const text = `${year}-${mm}-${dd}`;
        expect([text, isDay(text)]).toEqual([text, days.has(text)]);
        expect(Number.isNaN(instantMsOf(text))).toBe(!days.has(text));
        expect(Number.isNaN(instantMsOf(`${text}T12:00:00Z`))).toBe(!days.has(text));
      }
});

test.each([
  ["2026-11-22T08:30Z", "2026-11-22T08:30:00.000Z"],
  ["2026-11-22T08:30:15.25Z", "2026-11-22T08:30:15.250Z"],
  ["2026-11-22T08:30:15.123456789Z", "2026-11-22T08:30:15.123Z"],
  ["2026-11-22T00:30:00+02:00", "2026-11-21T22:30:00.000Z"],
  ["2026-11-22T23:30:00-05:30", "2026-11-23T05:00:00.000Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"],
])("the time %s is read as %s", (text, iso) => {
  expect(new Date(instantMsOf(text)).toISOString()).toBe(iso);
});

test.each([
  "2026-02-31",
  "2026-02-30T00:00:00Z",
  "2026-02-29T23:30:00-02:00",
  "2026-13-01T00:00:00Z",
  "2026-11-22T24:00:00Z",
  "2026-11-22T08:60:00Z",
  "2026-11-22T08:30:60Z",
  "2026-11-22T08:30:00+24:00",
  "2026-11-22T08:30:00+02:60",
  "2026-11-22T08:30:00",
  "2026-11-22T08Z",
  "2026-11-22T08:30:00+0200",
  " 2026-11-22",
  "2026-1-2",
  "now",
  "",
])("the time %j is rejected", (text) => {
  expect(instantMsOf(text)).toBeNaN();
});
