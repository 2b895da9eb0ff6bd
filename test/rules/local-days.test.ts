import { expect, onTestFinished, test, vi } from "vitest";
import { dayMs } from "../../src/platform/base/day.ts";
import { localDayOf } from "../../src/rules/local-days.ts";

const lookups = () => ({ failed: 0 });
const iso = (ms: number) => new Date(ms).toISOString();
const dayOf = (time: string, zone: string) => {
  const { day, startMs } = localDayOf(Date.parse(time), zone, lookups());
  return `${iso(day * dayMs).slice(0, 10)} from ${iso(startMs)}`;
};

test.each([
  ["UTC", "2026-06-15T00:00:00.000Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
  ["Europe/Berlin", "2026-06-14T22:00:00.000Z", "2026-06-15 from 2026-06-14T22:00:00.000Z"],
  ["Europe/Berlin", "2026-06-14T21:59:59.999Z", "2026-06-14 from 2026-06-13T22:00:00.000Z"],
  ["America/Los_Angeles", "2026-06-15T06:59:59.000Z", "2026-06-14 from 2026-06-14T07:00:00.000Z"],
  ["Pacific/Kiritimati", "2026-06-14T10:00:00.000Z", "2026-06-15 from 2026-06-14T10:00:00.000Z"],
  ["Asia/Kathmandu", "2026-06-14T18:15:00.000Z", "2026-06-15 from 2026-06-14T18:15:00.000Z"],
  // The clock changes during the day.
  ["Europe/Berlin", "2026-03-29T21:59:00.000Z", "2026-03-29 from 2026-03-28T23:00:00.000Z"],
  ["Europe/Berlin", "2026-10-25T22:59:00.000Z", "2026-10-25 from 2026-10-24T22:00:00.000Z"],
  // The day begins at one o'clock.
  ["Africa/Cairo", "2026-04-24T10:00:00.000Z", "2026-04-24 from 2026-04-23T22:00:00.000Z"],
  ["europe/BERLIN", "2026-06-14T22:00:00.000Z", "2026-06-15 from 2026-06-14T22:00:00.000Z"],
  ["Asia/Kolkata", "2026-06-14T18:30:00.000Z", "2026-06-15 from 2026-06-14T18:30:00.000Z"],
  ["+05:30", "2026-06-14T18:30:00.000Z", "2026-06-14 from 2026-06-14T00:00:00.000Z"],
  ["no zone", "2026-06-15T23:59:59.999Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
  ["", "2026-06-15T23:59:59.999Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
  ["\u212aabul", "2026-06-15T23:59:59.999Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
  ["x".repeat(1_000), "2026-06-15T10:00:00.000Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
])("in %s, %s is in the day %s", (zone, time, expected) => {
  expect(dayOf(time, zone)).toBe(expected);
  expect(dayOf(time, zone)).toBe(expected);
});

test("in each zone of this machine, a day has its midnight and its last millisecond", () => {
  for (const zone of Intl.supportedValuesOf("timeZone")) {
    const { day, startMs } = localDayOf(Date.parse("2026-06-15T12:00:00.000Z"), zone, lookups());
    expect(localDayOf(startMs, zone, lookups()).day, zone).toBe(day);
    expect(localDayOf(startMs - 1, zone, lookups()).day, zone).toBe(day - 1);
    expect(localDayOf(startMs + dayMs - 1, zone, lookups()).day, zone).toBe(day);
  }
});

test("the start of a day is the first moment of its date, whichever of its times is first", async () => {
  const [quarterMs, weekMs] = [900_000, 7 * dayMs];
  const begin = Date.parse("2026-01-01T12:00Z");
  const weeks = Array.from({ length: 52 }, (_, week) => begin + week * weekMs);
  const wrong: string[] = [];
  const withoutDays = async () => {
    vi.resetModules();
    return (await import("../../src/rules/local-days.ts")).localDayOf;
  };
  const [forwards, backwards] = [await withoutDays(), await withoutDays()];
  for (const zone of Intl.supportedValuesOf("timeZone")) {
    const hourOf = new Intl.DateTimeFormat("en", { timeZone: zone, timeStyle: "short" });
    const dateOf = new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" });
    const changed = weeks.filter((ms) => hourOf.format(ms) !== hourOf.format(ms + weekMs));
    for (const week of changed) {
      const starts = new Map<string, number>();
      const times: number[] = [];
      for (let ms = week - 2 * dayMs; ms < week + weekMs; ms += quarterMs) {
        const date = dateOf.format(ms);
        if (!starts.has(date)) starts.set(date, ms);
        if (ms >= week) times.push(ms);
      }
      for (const [dayOfTime, ordered] of [
        [forwards, times],
        [backwards, times.toReversed()],
      ] as const)
        for (const ms of ordered) {
          const { day, startMs } = dayOfTime(ms, zone, lookups());
          if (startMs !== starts.get(iso(day * dayMs).slice(0, 10)))
            wrong.push(`${zone} ${iso(ms)}`);
        }
    }
  }
  expect(wrong).toEqual([]);
});

test("the time zones are read once, however often they change", () => {
  const created = vi.spyOn(Intl, "DateTimeFormat");
  onTestFinished(() => created.mockRestore());
  const zones = [...Intl.supportedValuesOf("timeZone"), "Etc/Unknown"];
  const readAll = () => {
    for (const zone of zones)
      for (const time of ["2026-06-15T00:30Z", "2026-06-15T12:00Z", "2026-06-15T23:30Z"])
        for (const name of [zone, zone.toUpperCase()])
          localDayOf(Date.parse(time), name, lookups());
  };
  const formatted = vi.spyOn(Intl.DateTimeFormat.prototype, "formatToParts");
  onTestFinished(() => formatted.mockRestore());
  readAll();
  created.mockClear();
  formatted.mockClear();
  for (let round = 0; round < 3; round++) readAll();
  expect([created.mock.calls.length, formatted.mock.calls.length]).toEqual([0, 0]);
});

test("invented time zones are looked up only a few times for a request", () => {
  const now = Date.parse("2026-06-15T12:00Z");
  localDayOf(now, "Pacific/Kiritimati", lookups());
  const created = vi.spyOn(Intl, "DateTimeFormat");
  onTestFinished(() => created.mockRestore());
  const invented = { failed: 0 };
  for (let index = 0; index < 10_000; index++) localDayOf(now, `Mars/Base${index}`, invented);
  expect(created.mock.calls.length).toBe(64);
  expect(localDayOf(now, "Pacific/Kiritimati", invented).day * dayMs).toBe(
    Date.parse("2026-06-16"),
  );
});

test("a name with other letters does not count for the zone that it is similar to", () => {
  const now = Date.parse("2026-06-15T12:00Z");
  localDayOf(now, "\u212awajalein", lookups());
  expect(localDayOf(now, "Kwajalein", lookups()).startMs).toBe(Date.parse("2026-06-15T12:00Z"));
});
