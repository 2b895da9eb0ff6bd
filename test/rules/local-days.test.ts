import { expect, test } from "vitest";
import { dayMs } from "../../src/platform/base/day.ts";
import { LocalDays } from "../../src/rules/local-days.ts";

const iso = (ms: number) => new Date(ms).toISOString();
const days = new LocalDays();
const dayOf = (time: string, zone: string) => {
  const { day, startMs } = days.of(Date.parse(time), zone);
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
  ["no zone", "2026-06-15T23:59:59.999Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
  ["", "2026-06-15T23:59:59.999Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
  ["x".repeat(1_000), "2026-06-15T10:00:00.000Z", "2026-06-15 from 2026-06-15T00:00:00.000Z"],
])("in %s, %s is in the day %s", (zone, time, expected) => {
  expect(dayOf(time, zone)).toBe(expected);
  expect(dayOf(time, zone)).toBe(expected);
});

test("a client that invents names of zones does not slow down an event, or change known zones", () => {
  const other = new LocalDays();
  const noon = Date.parse("2026-06-15T12:00:00.000Z");
  const kiritimati = () => other.of(noon, "Pacific/Kiritimati").day - noon / dayMs;
  expect(kiritimati()).toBeGreaterThan(0);
  const began = process.threadCpuUsage();
  for (let index = 0; index < 200_000; index++) other.of(noon, `invented ${index}`);
  const { user, system } = process.threadCpuUsage(began);
  expect((user + system) / 200_000).toBeLessThan(8);
  // One of 32 unknown names is read.
  let days = 0;
  for (let read = 0; read < 64; read++) if (kiritimati() > 0) days++;
  expect(days).toBeGreaterThan(31);
});

test("in each zone of this machine, a day has its midnight and its last millisecond", () => {
  for (const zone of Intl.supportedValuesOf("timeZone")) {
    const { day, startMs } = days.of(Date.parse("2026-06-15T12:00:00.000Z"), zone);
    expect(days.of(startMs, zone).day, zone).toBe(day);
    expect(days.of(startMs - 1, zone).day, zone).toBe(day - 1);
    expect(days.of(startMs + dayMs - 1, zone).day, zone).toBe(day);
  }
});
