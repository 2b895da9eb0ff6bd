import { expect, test } from "vitest";
import { TimeZone } from "../../../src/commands/import/times.ts";

test.each([
  ["Asia/Kolkata", "2024-07-06T12:00:00", "2024-07-06T06:30:00.000Z"],
  ["+05:30", "2024-07-06T12:00:00", "2024-07-06T06:30:00.000Z"],
  ["-0800", "2024-07-06T20:00:00", "2024-07-07T04:00:00.000Z"],
  ["+18:00", "2024-07-06T12:00:00", "2024-07-05T18:00:00.000Z"],
  ["UTC", "2024-07-06T12:00:00.125", "2024-07-06T12:00:00.125Z"],
  ["America/New_York", "2024-01-15T12:00:00", "2024-01-15T17:00:00.000Z"],
  ["America/New_York", "2024-07-15T12:00:00", "2024-07-15T16:00:00.000Z"],
  ["America/New_York", "2024-03-10T01:59:59", "2024-03-10T06:59:59.000Z"],
  // The clocks skip the hour from 2 to 3.
  ["America/New_York", "2024-03-10T02:30:00", "2024-03-10T07:30:00.000Z"],
  ["America/New_York", "2024-03-10T03:00:00", "2024-03-10T07:00:00.000Z"],
  // The clocks show the hour from 1 to 2 twice.
  ["America/New_York", "2024-11-03T01:30:00", "2024-11-03T05:30:00.000Z"],
  ["America/New_York", "2024-11-03T02:00:00", "2024-11-03T07:00:00.000Z"],
  ["Australia/Lord_Howe", "2024-04-07T02:00:00", "2024-04-06T15:30:00.000Z"],
  // The clocks change at one minute past midnight.
  ["America/St_Johns", "2010-03-14T00:00:59.999", "2010-03-14T03:30:59.999Z"],
  ["America/St_Johns", "2010-03-14T01:01:00", "2010-03-14T03:31:00.000Z"],
  ["America/St_Johns", "2010-03-14T01:10:00", "2010-03-14T03:40:00.000Z"],
  ["America/St_Johns", "2010-11-06T23:00:59", "2010-11-07T01:30:59.000Z"],
  ["America/St_Johns", "2010-11-06T23:01:00", "2010-11-07T01:31:00.000Z"],
  ["America/St_Johns", "2010-11-07T00:01:00", "2010-11-07T03:31:00.000Z"],
  ["Asia/Gaza", "2010-03-27T00:00:30", "2010-03-26T22:00:30.000Z"],
  ["Asia/Gaza", "2010-03-27T01:05:00", "2010-03-26T22:05:00.000Z"],
  // The clocks skip a whole day.
  ["Pacific/Apia", "2011-12-29T23:59:59", "2011-12-30T09:59:59.000Z"],
  ["Pacific/Apia", "2011-12-31T00:00:00", "2011-12-30T10:00:00.000Z"],
  ["Europe/Berlin", "2019-12-31T23:59:59.999", "2019-12-31T22:59:59.999Z"],
])("in the time zone %s, the local time %s is %s", (zone, wall, utc) => {
  const ms = new TimeZone(zone).utcMs(Date.parse(`${wall}Z`));
  expect(new Date(ms).toISOString()).toBe(utc);
});

test.each(["Mars/Olympus", "5:30", "+25:00", "+18:01", "-2359", "+05:75", "", "IST5"])(
  "the time zone %j is rejected",
  (text) => {
    expect(() => new TimeZone(text)).toThrow(RangeError);
  },
);
