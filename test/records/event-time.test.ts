import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isZeroTime } from "../../src/records/other-date-forms.ts";
import { receivedAt, receivedAtMs, type StoredRecord, take } from "../kit/items.ts";

const hourMs = 3_600_000;
const at = (ms: number) => new Date(ms).toISOString();

const isStored = (text: unknown) =>
  typeof text === "string" && /^\d{4}-/.test(text) && at(Date.parse(text)) === text;

interface Said {
  timestamp?: unknown;
  offset?: unknown;
  properties?: Record<string, unknown>;
}

function stored(
  said: Said,
  sentAt: unknown = undefined,
): { record: StoredRecord; warnings: readonly string[] } {
  const { records, warnings } = take({
    sent_at: sentAt,
    batch: [{ event: "e", distinct_id: "u", ...said }],
  });
  expect(records).toHaveLength(1);
  return { record: records[0]!, warnings };
}

describe("the time of an event", () => {
  describe("from a client's clock", () => {
    test.each([
      ["correct", 0],
      ["a minute ahead", 60_000],
      ["a minute behind", -60_000],
      ["years ahead", 9 * 365 * 24 * hourMs],
      ["at its factory setting", -receivedAtMs + 1_000],
    ])("is corrected by the time of sending if the clock is %s", (_title, aheadMs) => {
      const happenedMs = receivedAtMs - 5_000;
      const { record, warnings } = stored(
        { timestamp: at(happenedMs + aheadMs) },
        at(receivedAtMs + aheadMs),
      );
      expect(warnings).toEqual([]);
      expect(record).toMatchObject({
        timestamp: at(happenedMs),
        received_at: receivedAt,
        sent_at: at(receivedAtMs + aheadMs),
      });
      expect(record["timestamp_sent"]).toBe(aheadMs === 0 ? undefined : at(happenedMs + aheadMs));
    });

    test("can be corrected again from the fields of the record", () => {
      const { record } = stored(
        { timestamp: "2026-06-15 14:00:00.123456+02" },
        "2026-06-15T12:00:01.5+00:00",
      );
      expect(record).toMatchObject({
        timestamp: "2026-06-15T11:59:58.623Z",
        timestamp_sent: "2026-06-15T12:00:00.123Z",
        received_at: receivedAt,
        sent_at: "2026-06-15T12:00:01.500Z",
      });
      expect(Object.keys(record)).toEqual([
        "uuid",
        "project_id",
        "event",
        "distinct_id",
        "timestamp",
        "timestamp_sent",
        "received_at",
        "sent_at",
        "kind",
        "person_profile",
        "historical",
        "properties",
      ]);
    });

    test("is stored in the standard form if the clock is correct", () => {
      for (const timestamp of [
        "2026-06-15T11:00:00.67 Z",
        "2026-06-15T11:00:00.67  ",
        "2026-06-15T11:00:00.6+01",
      ]) {
        const { record } = stored({ timestamp });
        expect(record["timestamp"]).toMatch(/^2026-06-15T1[0-2]:00:00\.[06][07]0Z$/);
      }
      const character = fc.constantFrom(..."0123456789-:., TtZz+");
      fc.assert(
        fc.property(fc.nat(23), character, fc.nat(23), character, (one, first, other, second) => {
          const characters = [..."2026-06-15T11:00:00.678Z"];
          characters[one] = first;
          characters[other] = second;
          const { record } = stored({ timestamp: characters.join("") });
          expect(isStored(record["timestamp"])).toBe(true);
        }),
        { numRuns: 1_000 },
      );
    });

    test("is not corrected if the request has no time of sending", () => {
      for (const sentAt of [undefined, null]) {
        const { record, warnings } = stored({ timestamp: "2026-06-15T11:00:00Z" }, sentAt);
        expect(warnings).toEqual([]);
        expect(record["timestamp"]).toBe("2026-06-15T11:00:00.000Z");
        expect(record).not.toHaveProperty("timestamp_sent");
        expect(record).not.toHaveProperty("sent_at");
      }
    });

    test("is corrected for historical events too", () => {
      const body = {
        sent_at: at(receivedAtMs + 60_000),
        batch: [{ event: "e", distinct_id: "u", timestamp: "2019-05-01T00:01:00Z" }],
      };
      expect(take(body, { historical: true }).records[0]).toMatchObject({
        timestamp: "2019-05-01T00:00:00.000Z",
        timestamp_sent: "2019-05-01T00:01:00.000Z",
      });
    });

    test.each([
      ["query", undefined, receivedAtMs + 60_000, receivedAtMs + 60_000],
      [
        "body, not in the query",
        at(receivedAtMs + 30_000),
        receivedAtMs + 60_000,
        receivedAtMs + 30_000,
      ],
      ["query if the body has null", null, receivedAtMs + 60_000, receivedAtMs + 60_000],
    ])("is corrected by the time of sending in the %s", (_title, inBody, sentAtMs, expectedMs) => {
      const body = {
        sent_at: inBody,
        batch: [{ event: "e", distinct_id: "u", timestamp: at(receivedAtMs + 60_000) }],
      };
      const { records, warnings } = take(body, { sentAtMs });
      expect(warnings).toEqual([]);
      expect(records[0]).toMatchObject({
        sent_at: at(expectedMs),
        timestamp: at(2 * receivedAtMs + 60_000 - expectedMs),
      });
    });

    test("is corrected by the sent_at of a single event", () => {
      const event = {
        event: "e",
        distinct_id: "u",
        timestamp: at(receivedAtMs),
        sent_at: at(receivedAtMs + 1_000),
      };
      expect(take(event).records[0]).toMatchObject({
        timestamp: at(receivedAtMs - 1_000),
        sent_at: at(receivedAtMs + 1_000),
      });
      const escaped = JSON.stringify(event).replace(/:(?=\d\d:\d\d\.)/g, "\\u003a");
      expect(take(escaped).records[0]).toMatchObject({
        timestamp: at(receivedAtMs - 1_000),
        sent_at: at(receivedAtMs + 1_000),
      });
    });

    test.each([
      ["yesterday"],
      [""],
      [178_152_480],
      [true],
      [{}],
      [[]],
      ["2026-13-01"],
      ["2026-06-15T12:00:00.000000000Z and so on"],
    ])("is not corrected if the time of sending is invalid (%j)", (sentAt) => {
      const event = { event: "e", distinct_id: "u", timestamp: "2026-06-15T11:00:00Z" };
      const { records, warnings } = take({ sent_at: sentAt, batch: [1, event, event] });
      expect(warnings.filter((code) => code === "invalid_sent_at")).toHaveLength(1);
      for (const record of records) {
        expect(record["timestamp"]).toBe("2026-06-15T11:00:00.000Z");
        expect(record).not.toHaveProperty("sent_at");
      }
    });

    test("is corrected by the query if the body's time is invalid", () => {
      const body = {
        sent_at: "now",
        batch: [{ event: "e", distinct_id: "u", timestamp: at(receivedAtMs) }],
      };
      const { records, warnings } = take(body, { sentAtMs: receivedAtMs + 1_000 });
      expect(warnings).toEqual(["invalid_sent_at"]);
      expect(records[0]).toMatchObject({
        timestamp: at(receivedAtMs - 1_000),
        sent_at: at(receivedAtMs + 1_000),
      });
    });

    test.each([Number.POSITIVE_INFINITY, 8_640_000_000_000_000, -1e300])(
      "is not corrected by the time of sending %d in the query",
      (sentAtMs) => {
        const { records, warnings } = take({ event: "e", distinct_id: "u" }, { sentAtMs });
        expect(warnings).toEqual(["invalid_sent_at"]);
        expect(records[0]).not.toHaveProperty("sent_at");
      },
    );

    test.each([
      [true, false],
      [false, true],
      ["true", true],
      [1, true],
      [null, true],
    ])("is corrected unless $ignore_sent_at is the boolean true: %j", (ignore, isCorrected) => {
      const { record } = stored(
        { timestamp: at(receivedAtMs), properties: { $ignore_sent_at: ignore } },
        at(receivedAtMs + 1_000),
      );
      expect(record["timestamp"]).toBe(at(isCorrected ? receivedAtMs - 1_000 : receivedAtMs));
      expect(record["timestamp_sent"]).toBe(isCorrected ? at(receivedAtMs) : undefined);
      expect(record["sent_at"]).toBe(at(receivedAtMs + 1_000));
    });
  });

  describe("from an offset", () => {
    test.each([
      [0, 0],
      [1_500, 1_500],
      [-1_500, -1_500],
      [12.4, 12],
      ["1e3", 1_000],
      ["15000000000000000e-13", 1_500],
      [62_167_219_200_000, 62_167_219_200_000],
    ] as const)("is %s ms before the receipt", (offset, agoMs) => {
      const body = `{"batch":[{"event":"e","distinct_id":"u","timestamp":"2026-01-01T00:00:00.000Z","offset":${offset}}],"sent_at":"2026-01-01T00:00:00Z"}`;
      const { records, warnings } = take(body);
      expect(warnings).toEqual([]);
      expect(records[0]).toMatchObject({
        timestamp: at(receivedAtMs - agoMs),
        timestamp_sent: "2026-01-01T00:00:00.000Z",
      });
    });

    test("has no missing-timestamp warning if the event has no timestamp", () => {
      const body = { batch: [{ event: "e", distinct_id: "u", offset: 10 }] };
      const { records, warnings } = take(body, { historical: true });
      expect(warnings).toEqual([]);
      expect(records[0]).toMatchObject({ timestamp: at(receivedAtMs - 10) });
      expect(records[0]).not.toHaveProperty("timestamp_sent");
    });

    test.each([
      '"1500"',
      "true",
      "{}",
      "[]",
      '""',
      "1e400",
      "1e300",
      "99999999999999999999999",
      "63949046400001",
    ])("is not changed by the invalid offset %s", (offset) => {
      const { records, warnings } = take(
        `{"event":"e","distinct_id":"u","timestamp":"2026-06-15T11:00:00Z","offset":${offset}}`,
      );
      expect(warnings).toEqual(["invalid_offset"]);
      expect(records[0]).toMatchObject({ timestamp: "2026-06-15T11:00:00.000Z" });
    });

    test("is not changed by the offset null", () => {
      expect(stored({ offset: null })).toMatchObject({
        record: { timestamp: receivedAt },
        warnings: [],
      });
    });
  });

  describe("out of range", () => {
    test.each([
      [{ timestamp: at(receivedAtMs + 23 * hourMs) }, undefined, 23 * hourMs],
      [{ timestamp: at(receivedAtMs + 23 * hourMs + 1) }, undefined, undefined],
      [{ timestamp: "9999-12-31T23:59:59.999Z" }, undefined, undefined],
      [{ timestamp: at(receivedAtMs) }, at(receivedAtMs - 23 * hourMs), 23 * hourMs],
      [{ timestamp: at(receivedAtMs - 1) }, at(receivedAtMs - 23 * hourMs - 2), undefined],
      [{ timestamp: "9999-12-31" }, "0002-01-01", undefined],
      [{ offset: -23 * hourMs }, undefined, 23 * hourMs],
      [{ offset: -23 * hourMs - 1 }, undefined, undefined],
      [{ offset: -1e300 }, undefined, undefined],
      [{ timestamp: at(receivedAtMs + 100 * hourMs) }, at(receivedAtMs + 99 * hourMs), hourMs],
    ])("is replaced if it is over 23 hours ahead: %j, sent at %s", (said, sentAt, aheadMs) => {
      const { record, warnings } = stored(said, sentAt);
      expect(warnings).toEqual(aheadMs === undefined ? ["timestamp_in_future"] : []);
      expect(record["timestamp"]).toBe(at(receivedAtMs + (aheadMs ?? 0)));
      if ("timestamp" in said && aheadMs === undefined) {
        expect(record["timestamp_sent"]).toBe(new Date(said.timestamp as string).toISOString());
      }
    });

    test("is replaced if the correction moves it before year 0", () => {
      const clockMs = receivedAtMs + (Date.parse("0003-01-01") - Date.parse("0000-01-01"));
      const { record, warnings } = stored({ timestamp: "0002-12-31T23:59:59Z" }, at(clockMs));
      expect(warnings).toEqual(["invalid_timestamp"]);
      expect(record).toMatchObject({
        timestamp: receivedAt,
        timestamp_sent: "0002-12-31T23:59:59.000Z",
      });
      expect(stored({ timestamp: "0003-01-01" }, at(clockMs))).toMatchObject({
        record: { timestamp: "0000-01-01T00:00:00.000Z" },
        warnings: [],
      });
    });
  });

  test("does not change the length of its record", () => {
    const batch = [
      { event: "e", distinct_id: "u", timestamp: at(receivedAtMs) },
      { event: "e", distinct_id: "u", timestamp: "2026-06-15", $set: { a: 1 } },
      {
        event: "e",
        distinct_id: "u",
        timestamp: at(receivedAtMs),
        properties: { $ignore_sent_at: true },
      },
      { event: "e", distinct_id: "u" },
    ];
    const sent = [0, 1, -30 * hourMs].map((lateMs) =>
      take({ sent_at: at(receivedAtMs + lateMs), batch }),
    );
    expect(new Set(sent.map(({ lines }) => lines.join("").length)).size).toBeGreaterThan(1);
    expect(sent[1]!.measured).toEqual(sent[0]!.measured);
    expect(sent[2]!.measured).toEqual(sent[0]!.measured);
  });

  test("follows the documented rule for any timestamp, clock and offset", () => {
    const moments = fc
      .oneof(
        fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
        fc.integer({ min: receivedAtMs - 30 * hourMs, max: receivedAtMs + 30 * hourMs }),
      )
      .filter((ms) => !isZeroTime(ms));
    const said = fc.record({
      happened: fc.option(moments),
      sentAt: fc.option(moments),
      offset: fc.option(
        fc.oneof(fc.integer(), fc.integer({ min: -30 * hourMs, max: 30 * hourMs })),
      ),
      ignore: fc.boolean(),
    });
    fc.assert(
      fc.property(said, ({ happened, sentAt, offset, ignore }) => {
        const { record } = stored(
          {
            timestamp: happened === null ? null : at(happened),
            offset,
            properties: ignore ? { $ignore_sent_at: true } : {},
          },
          sentAt === null ? null : at(sentAt),
        );
        let ms = happened ?? receivedAtMs;
        if (happened !== null && sentAt !== null && !ignore)
          ms = happened - (sentAt - receivedAtMs);
        if (offset !== null) ms = receivedAtMs - offset;
        if (ms > receivedAtMs + 23 * hourMs || ms < -62_167_219_200_000) ms = receivedAtMs;
        expect(record["timestamp"]).toBe(at(ms));
        expect(record["sent_at"]).toBe(sentAt === null ? undefined : at(sentAt));
        expect(record["timestamp_sent"]).toBe(
          happened === null || happened === ms ? undefined : at(happened),
        );
      }),
      { numRuns: 800 },
    );
  });
});
