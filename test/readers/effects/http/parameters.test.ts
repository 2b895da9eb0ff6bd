import { expect, test } from "vitest";
import { day, instantMs } from "../../../../src/readers/effects/http/parameters.ts";

test.each([
  ["2026-11-22", Date.UTC(2026, 10, 22)],
  ["2028-02-29", Date.UTC(2028, 1, 29)],
  ["2026-11-22T08:30Z", Date.UTC(2026, 10, 22, 8, 30)],
  ["2026-11-22T08:30:15.250Z", Date.UTC(2026, 10, 22, 8, 30, 15, 250)],
  ["2026-11-22T00:30:00+02:00", Date.UTC(2026, 10, 21, 22, 30)],
])("a time parameter accepts %s", (text, ms) => {
  expect(instantMs(text)).toBe(ms);
});

test.each([
  "2026-02-30",
  "2026-02-30T00:00:00Z",
  "2026-02-29T23:30:00-02:00",
  "2026-13-01T00:00:00Z",
  "2026-11-22T25:00:00Z",
  "2026-11-22T08:30:00",
  "2026-11-22T08:30:00+0200",
  "now",
  "",
])("a time parameter rejects %j", (text) => {
  expect(() => instantMs(text)).toThrow("must be a day such as 2026-11-22, or a time such as");
});

test("a day parameter rejects a day that does not exist", () => {
  expect(() => day("2026-02-30")).toThrow("must be a day such as 2026-11-22");
});
