import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clientTimeMs, isZeroTime } from "../../src/records/other-date-forms.ts";
import { receivedAt, receivedAtMs, take } from "../kit/items.ts";

function momentOf(text: string, json = JSON.stringify(text)): string | undefined {
  const token = Buffer.from(` ${json} `);
  const ms = clientTimeMs(token, 1, token.length - 1);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

const seven = "2026-11-22T07:00:00.000Z";

describe("date formats other than ISO 8601", () => {
  describe("a timestamp", () => {
    test.each([
      // RFC 2822
      ["Sun, 22 Nov 2026 07:00:00 GMT", seven],
      ["Sun, 22 Nov 2026 09:00:00 +0200", seven],
      ["22 Nov 2026 07:00 UT", seven],
      ["Sun, 22 Nov 26 02:00:00 EST", seven],
      ["Wed, 02 Jun 2021 06:31:39 GMT", "2021-06-02T06:31:39.000Z"],
      ["Tue, 1 Jul 2003 10:52:37 +0200", "2003-07-01T08:52:37.000Z"],
      // slashes, month first
      ["11/22/2026 07:00", seven],
      ["11/22/2026 7:00:00 AM", seven],
      ["11/22/2026, 7:00:00\u202fAM", seven],
      ["4/8/14 22:05", "2014-04-08T22:05:00.000Z"],
      ["8/8/1965 12:00 AM", "1965-08-08T00:00:00.000Z"],
      ["8/8/1965 01:00:01 PM", "1965-08-08T13:00:01.000Z"],
      ["03/19/2012 10:11:59.3186369", "2012-03-19T10:11:59.318Z"],
      ["11/22/2026", "2026-11-22T00:00:00.000Z"],
      ["08/21/71", "1971-08-21T00:00:00.000Z"],
      ["2026/11/22 07:00", seven],
      ["2014/3/31", "2014-03-31T00:00:00.000Z"],
      ["2014.03.30", "2014-03-30T00:00:00.000Z"],
      // numbers since 1970
      ["1795330800", seven],
      ["1795330800123", "2026-11-22T07:00:00.123Z"],
      ["1795330800123456", "2026-11-22T07:00:00.123Z"],
      ["1795330800123456789", "2026-11-22T07:00:00.123Z"],
      ["1795330800.5", "2026-11-22T07:00:00.500Z"],
      ["1795330800123.9", "2026-11-22T07:00:00.123Z"],
      [" 11/22/2026 ", "2026-11-22T00:00:00.000Z"],
      ["11/22/2026\n", "2026-11-22T00:00:00.000Z"],
      ["\t2026-11-22T07:00:00Z ", seven],
      // RFC 9557
      ["2026-11-22T12:30:00+05:30[Asia/Kolkata]", seven],
      ["2026-11-22T07:00:00Z[Etc/UTC]", seven],
      ["2026-11-22T07:00:00.000Z[!UTC][u-ca=gregory]", seven],
      ["2026-11-22T08:00:00.123456789+01:00[Europe/Berlin]", "2026-11-22T07:00:00.123Z"],
      ["2026-11-22T07:00:00[UTC]", seven],
      ["2026-11-22T07:00:00[u-ca=gregory]", seven],
      // Date.toISOString with six digits for the year, and .NET's JSON
      ["+002026-11-22T07:00:00.000Z", seven],
      ["/Date(1795330800000)/", seven],
      ["/Date(1795330800000+0100)/", seven],
      ["/Date(86400000)/", "1970-01-02T00:00:00.000Z"],
      // Go's Time.String
      ["2026-11-22 07:00:00.123 +0000 UTC m=+0.010000001", "2026-11-22T07:00:00.123Z"],
      ["2026-11-22 07:00:00 +0000 UTC", seven],
      ["2026-11-22 12:30:00.123456789 +0530 IST", "2026-11-22T07:00:00.123Z"],
      ["2026-11-22 04:00:00 -0300 -03 m=-1.5", seven],
      ["2026-11-22 12:45:00 +0545 +0545", seven],
      // JavaScript's Date.toString
      ["Sun Nov 22 2026 08:00:00 GMT+0100 (CET)", seven],
      ["Sun Nov 22 2026 08:00:00 GMT+0100 (Central European Standard Time)", seven],
      ["Sun Nov 22 2026 00:00:00 GMT-0700 (Mountain Standard Time (Mexico))", seven],
      ["Sun Nov 22 2026 07:00:00 GMT+0000", seven],
      // RFC 2822 with a comment, RFC 850 and C
      ["Sun, 22 Nov 2026 08:00:00 +0100 (CET)", seven],
      ["Sunday, 22-Nov-26 07:00:00 GMT", seven],
      ["Sunday, 22 Nov 2026 07:00:00 GMT", seven],
      ["Sun Nov 22 07:00:00 2026", seven],
      ["Sun Nov  1 07:00:00 2026", "2026-11-01T07:00:00.000Z"],
      ["Sun Nov 22 07:00:00 UTC 2026", seven],
      // dashes with a zone name, or a 12-hour clock
      ["2026-11-22 07:00:00 UTC", seven],
      ["2026-11-22 07:00 GMT", seven],
      ["2026-11-22 07:00:00.257000000 utc", "2026-11-22T07:00:00.257Z"],
      ["2017-11-25 13:31:15 PST", "2017-11-25T21:31:15.000Z"],
      ["2014-04-26 05:24:37 PM", "2014-04-26T17:24:37.000Z"],
      ["2026-11-22  07:00:00", seven],
      // months by name
      ["2021-Feb-21", "2021-02-21T00:00:00.000Z"],
      ["May 8, 2009 5:57:51 PM", "2009-05-08T17:57:51.000Z"],
      ["September 17, 2012 at 10:09am", "2012-09-17T10:09:00.000Z"],
      ["May 02, 2021 15:51:31 UTC", "2021-05-02T15:51:31.000Z"],
      ["oct. 7, 1970", "1970-10-07T00:00:00.000Z"],
      ["12 Feb 2006, 19:17", "2006-02-12T19:17:00.000Z"],
      ["14 May 2019 19:11:40.164", "2019-05-14T19:11:40.164Z"],
      ["7 oct 70", "1970-10-07T00:00:00.000Z"],
      // no separators, and Chinese
      ["20261122T070000Z", seven],
      ["20261122T0900+02", seven],
      ["2014年04月08日11时25分18秒", "2014-04-08T11:25:18.000Z"],
      ["2014年04月08日", "2014-04-08T00:00:00.000Z"],
    ])("is read: %j", (text, moment) => {
      expect(momentOf(text)).toBe(moment);
    });

    test.each([
      // no date, no year, ambiguous day and month, an ambiguous century
      "07:00",
      "May 27 02:45:27",
      "05.06.2026",
      "7 oct 55",
      "171113 14:14:20",
      "2014.03",
      // ambiguous and invalid zones
      "2026-11-22 07:00:00 CET",
      "2026-11-22 07:00:00 IST",
      "22 Nov 2026 07:00 +24:00",
      "22 Nov 2026 07:00 +0260",
      // times that never existed
      "11/31/2026",
      "13/01/2026",
      "0/1/2026",
      "2/29/2025",
      "31 Jun 2026",
      "Mon, 22 Nov 2026 07:00:00 GMT",
      "11/22/2026 24:00",
      "11/22/2026 07:60",
      "11/22/2026 13:00 PM",
      "11/22/2026 0:30 AM",
      "20260229T000000Z",
      // digits of unknown length, and years that a record cannot hold
      "179533080",
      "17953308001",
      "179533080012345",
      "99999999999999999999",
      "01/01/0000 00:00 +01:00",
      // text that only begins with a date
      "",
      "now",
      "Sun",
      "22 Novem 2026",
      "11/22/2026 07:00 and more",
      "-1795330800",
      "1795330800.",
      "Infinity",
      "2026-11-22 07:00:00 UTC UTC",
      `1${" ".repeat(120)}Nov 2026`,
      // Date.parse would accept these, with a result that depends on the machine
      "22",
      "2026",
      "Nov 2026",
      // ambiguous zones, and a weekday that does not match the date
      "Sun Nov 22 07:00:00 IST 2026",
      "Mon Nov 22 2026 07:00:00 GMT+0100 (CET)",
      "2026-11-22T07:00:00[Europe/Paris]",
      "2026-11-22 07:00 AM[Asia/Tokyo]",
      "/Date(x)/",
      "2026-11-22T07:00:00[Europe/Paris][u-ca=gregory]",
      "+012026-11-22T07:00:00Z",
      "2026-11-22T07:00:00[Asia/Kolkata",
      "2026-11-22T07:00:00Z[]",
      "2026-11-22 07:00 m=+1",
    ])("is rejected: %j", (text) => {
      expect(momentOf(text)).toBeUndefined();
    });

    test.each([
      ["1795330800", seven],
      ["1795330800.25", "2026-11-22T07:00:00.250Z"],
      ["1.7953308E9", seven],
      ["1795330800123", "2026-11-22T07:00:00.123Z"],
      ["1.795330800123e+12", "2026-11-22T07:00:00.123Z"],
      ["1795330800123456", "2026-11-22T07:00:00.123Z"],
      ["1795330800123456789", "2026-11-22T07:00:00.123Z"],
    ])("is read as the number %s", (json, moment) => {
      expect(momentOf("", json)).toBe(moment);
    });

    test.each(["-1795330800", "179533080", "17953308001", "1e400", "1e-9", "true", "{}", "[]"])(
      "is rejected as the value %s",
      (json) => {
        expect(momentOf("", json)).toBeUndefined();
      },
    );

    const moments = fc
      .integer({ min: 0, max: Date.UTC(2049, 11, 31) })
      .map((ms) => Math.floor(ms / 1_000) * 1_000);
    const two = (value: number): string => String(value).padStart(2, "0");

    test("is read in each format that Date can write", () => {
      const writers: ((date: Date) => string)[] = [
        (date) => date.toUTCString(),
        (date) => String(date.getTime()).padStart(13, "0"),
        (date) => String(date.getTime() / 1_000).padStart(10, "0"),
        (date) => date.toLocaleString("en-US", { timeZone: "UTC" }),
        (date) =>
          date.toLocaleString("en-US", { timeZone: "UTC", dateStyle: "long", timeStyle: "medium" }),
        (date) =>
          date.toLocaleString("en-US", { timeZone: "UTC", dateStyle: "medium", timeStyle: "long" }),
        (date) => `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`,
        (date) => date.toISOString().slice(0, 19).replaceAll(/[-:]/g, ""),
        (date) =>
          `${date.getUTCFullYear()}/${two(date.getUTCMonth() + 1)}/${two(date.getUTCDate())} ${date.toISOString().slice(11, 23)}`,
      ];
      fc.assert(
        fc.property(moments, fc.constantFrom(...writers), (ms, write) => {
          const date = new Date(ms);
          expect(momentOf(write(date)), write(date)).toBe(date.toISOString());
        }),
        { numRuns: 1_000 },
      );
    });

    test("is read the same in any time zone of the machine", () => {
      const before = process.env["TZ"];
      try {
        for (const zone of ["America/New_York", "Asia/Kolkata", "UTC"]) {
          process.env["TZ"] = zone;
          expect(momentOf("11/22/2026 07:00")).toBe(seven);
          expect(momentOf("Sun, 22 Nov 2026 07:00:00 GMT")).toBe(seven);
        }
      } finally {
        if (before === undefined) delete process.env["TZ"];
        else process.env["TZ"] = before;
      }
    });

    test("gives a time or NaN for any text", () => {
      const escaped = [..."11/22/2026 07:00"].map(
        (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );
      const token = Buffer.from(`"${escaped.join("")}"`);
      expect(clientTimeMs(token, 0, token.length)).toBe(Date.parse(seven));
      const pieces = fc.constantFrom(
        ..."0123456789",
        "/",
        "-",
        ".",
        ":",
        " ",
        ",",
        "T",
        "Z",
        "Nov",
        "UTC",
        "PM",
        "+",
        "年",
        "at",
      );
      fc.assert(
        fc.property(fc.array(pieces, { maxLength: 80 }), (parts) => {
          const text = momentOf(parts.join(""));
          if (text !== undefined) expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        }),
        { numRuns: 1_000 },
      );
    });
  });

  describe("an event with such a timestamp", () => {
    const storedForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

    test.each([
      ["Sun, 07 Jun 2026 07:00:00 GMT", "2026-06-07T07:00:00.000Z"],
      ["06/07/2026 07:00", "2026-06-07T07:00:00.000Z"],
      ["1780815600", "2026-06-07T07:00:00.000Z"],
      // As long as the stored form, but different.
      ["2026-06-07T07:00:00.12 Z", "2026-06-07T07:00:00.120Z"],
      ["2026/06/07 07:00:00.123Z", "2026-06-07T07:00:00.123Z"],
    ])("is stored without a warning: %j", (timestamp, stored) => {
      const { records, warnings } = take({ batch: [{ event: "e", distinct_id: "u", timestamp }] });
      expect(warnings).toEqual([]);
      expect(records[0]!["timestamp"]).toMatch(storedForm);
      expect(records[0]!["timestamp"]).toBe(stored);
      expect(records[0]).not.toHaveProperty("timestamp_sent");
    });

    test("is corrected by the client's clock", () => {
      const sentAt = new Date(receivedAtMs + 3_600_000).toISOString();
      const event = { event: "e", distinct_id: "u", timestamp: "06/07/2026 07:00" };
      expect(take({ sent_at: sentAt, batch: [event] }).records[0]).toMatchObject({
        timestamp: "2026-06-07T06:00:00.000Z",
        timestamp_sent: "2026-06-07T07:00:00.000Z",
      });
    });

    test.each(["05.06.2026", "2026-11-22 07:00:00 CET", 178081560, { at: 1 }, false])(
      "has a warning that explains the format for %j",
      (timestamp) => {
        const { records, warnings, details } = take({
          batch: [{ event: "e", distinct_id: "u", timestamp }],
        });
        expect(warnings).toEqual(["invalid_timestamp"]);
        expect(details[0]).toContain("ISO 8601");
        expect(records[0]).toMatchObject({ timestamp: receivedAt, replaced: { timestamp } });
      },
    );

    test.each([
      "0001-01-01T00:00:00Z",
      "0001-01-01T00:00:00",
      "0001-01-01 00:00:00 +0000 UTC",
      "0001-01-01T00:00:00+14:00",
      "0001-12-31T23:59:59Z",
      "0000-01-01T00:00:00Z",
      "1970-01-01T00:00:00.000Z",
      "1970-01-01",
      "Thu, 01 Jan 1970 00:00:00 GMT",
      0,
      -62_135_596_800,
      -62_135_596_800_000,
      "0",
      "-62135596800",
      "/Date(-62135596800000)/",
    ])("has the time of receipt instead of the zero time %j", (timestamp) => {
      const event = { event: "e", distinct_id: "u", timestamp };
      const { records, warnings } = take({ batch: [event] });
      expect(warnings).toEqual(["zero_timestamp"]);
      expect(records[0]).toMatchObject({ timestamp: receivedAt, replaced: { timestamp } });
      expect(records[0]).not.toHaveProperty("timestamp_sent");
      const before = take({ batch: [{ ...event, offset: 1_000 }] }).records[0];
      expect(before!["timestamp"]).toBe(new Date(receivedAtMs - 1_000).toISOString());
    });

    test("has no warning for years that are close to a zero time", () => {
      for (const text of ["0002-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z", "1969-12-31"])
        expect(isZeroTime(Date.parse(text))).toBe(false);
    });
  });

  describe("a sent_at", () => {
    const timestamp = "2026-06-07T07:00:00.000Z";
    const batch = [
      { event: "a", distinct_id: "u", timestamp },
      { event: "b", distinct_id: "u", timestamp },
    ];

    test("is read in the same formats", () => {
      const sentAt = `${new Date(receivedAtMs + 3_600_000).toISOString()}[Etc/UTC]`;
      const { records, warnings } = take({ sent_at: sentAt, batch });
      expect(warnings).toEqual([]);
      expect(records[0]).toMatchObject({ timestamp: "2026-06-07T06:00:00.000Z" });
    });

    test.each(["0001-01-01T00:00:00Z", "yesterday", 12])(
      "corrects nothing if it is %j",
      (sentAt) => {
        const { records, warnings } = take({ sent_at: sentAt, batch });
        expect(warnings).toEqual(["invalid_sent_at"]);
        for (const record of records)
          expect(record).toMatchObject({ timestamp, replaced: { sent_at: sentAt } });
      },
    );
  });

  test("the record stores the original of each value that is replaced", () => {
    const long = `x${"é\u0001".repeat(4_000)}`;
    const { records, warnings } = take({
      batch: [
        { event: "e", distinct_id: "u", timestamp: "soon", uuid: "no", offset: "1" },
        { event: "e", distinct_id: long, timestamp: long, $set: { a: 1 }, uuid: null },
        { event: "e", distinct_id: "u", uuid: ["a", '"'.repeat(600)] },
        { event: "e", distinct_id: "u", timestamp: "2026-06-07T07:00:00.000Z", offset: 5 },
        { event: "e", distinct_id: "u", $set: 1, $set_once: ["x"], $unset: "y" },
        { event: "e", distinct_id: "u", $set: "top", properties: { $set: 2, $unset: 3 } },
        { event: "e", distinct_id: "u", $set: [], $set_once: null, $unset: {} },
      ],
    });
    expect(warnings).toContain("invalid_uuid");
    expect(records[0]!["replaced"]).toEqual({ timestamp: "soon", offset: "1", uuid: "no" });
    const kept = long.slice(0, 256);
    expect(records[1]).toMatchObject({ replaced: { timestamp: kept, distinct_id: kept } });
    expect((records[2]!["replaced"] as { uuid: string }).uuid).toMatch(/^\["a","\\"/);
    expect(records[3]).not.toHaveProperty("replaced");
    expect(records[4]!["replaced"]).toEqual({ $set: 1, $set_once: ["x"], $unset: "y" });
    expect(records[5]!["replaced"]).toEqual({ $set: "top", $unset: 3 });
    expect(records[6]).not.toHaveProperty("replaced");
  });
});
