import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../../src/commands/import/json-text.ts";
import { TimeZone } from "../../../../src/commands/import/times.ts";
import { bodiesOf } from "../bodies.ts";
import { fileWith, runImport } from "../import-kit.ts";

async function eventsOf(lines: readonly JsonObject[], timeZone?: string) {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const zone = timeZone === undefined ? undefined : new TimeZone(timeZone);
  const {
    bodies,
    notes,
    lines: numbers,
  } = await bodiesOf([text], {
    formatOptions: { groupType: "company", timeZone: zone },
  });
  const batch = bodies.flatMap((body) => (JSON.parse(body) as { batch: JsonObject[] }).batch);
  return { batch, notes, numbers: numbers.flat() };
}

const seconds = 1_602_611_311;
const view = (properties: JsonObject): JsonObject => ({
  event: "View",
  properties: { time: seconds, $insert_id: "i", ...properties },
});
const uuidOf = async (line: JsonObject) => (await eventsOf([line])).batch[0]!["uuid"];

describe("a Mixpanel event", () => {
  const monday = view({ distinct_id: "$device:d", $device_id: "d", mp_processing_time_ms: 1 });
  const before = { $distinct_id_before_identity: "$device:d" };
  test.each([
    ["its visitor was identified", view({ distinct_id: "u", $device_id: "d", ...before })],
    ["its earlier id is missing", view({ distinct_id: "u", $device_id: "d" })],
    ["it is in milliseconds", view({ distinct_id: "u", $device_id: "d", time: seconds * 1e3 + 9 })],
    [
      "it was processed again",
      view({
        distinct_id: "m",
        $device_id: "d",
        mp_processing_time_ms: 2,
        $mp_api_timestamp_ms: 3,
      }),
    ],
  ])("has the same uuid in another export even if %s", async (_, line) => {
    expect(await uuidOf(line)).toBe(await uuidOf(monday));
  });

  test("has the uuid and distinct id of its device", async () => {
    const later = view({ distinct_id: "u", $device_id: "d", ...before });
    const { batch } = await eventsOf([monday, later]);
    expect(batch.map(({ distinct_id: id }) => id)).toEqual(["$device:d", "$device:d", "u"]);
    expect(batch[2]).toMatchObject({ properties: { $anon_distinct_id: "$device:d" } });
  });

  test("has the same uuid in another export even without a device", async () => {
    const later = view({ distinct_id: "canonical", $distinct_id_before_identity: "a" });
    expect(await uuidOf(later)).toBe(await uuidOf(view({ distinct_id: "a" })));
  });

  test.each<[string, JsonObject, JsonObject]>([
    ["a numeric distinct id", { distinct_id: 7 }, { distinct_id: "7" }],
    [
      "a long distinct id",
      { distinct_id: 9_007_199_254_740_991 },
      { distinct_id: "9007199254740991" },
    ],
    [
      "a numeric device",
      { distinct_id: "u", $device_id: 7 },
      { distinct_id: "v", $device_id: "7" },
    ],
    [
      "a numeric id before",
      { distinct_id: "u", $distinct_id_before_identity: 7 },
      { distinct_id: "7" },
    ],
    [
      "a numeric insert id",
      { distinct_id: "u", $insert_id: 5 },
      { distinct_id: "u", $insert_id: "5" },
    ],
    ...["2020-10-13T17:48:31", "2020-10-13 17:48:31.500", "2020-10-13T17:48:31Z", "1602611311"].map(
      (time): [string, JsonObject, JsonObject] => [
        `the time ${time}`,
        { distinct_id: "u", time },
        { distinct_id: "u", time: seconds },
      ],
    ),
  ])("has the same uuid whether %s is a string or a number", async (_, one, other) => {
    expect(await uuidOf(view(one))).toBe(await uuidOf(view(other)));
  });

  test.each([
    ["a different device", view({ distinct_id: "u", $device_id: "e" })],
    ["a different second", view({ distinct_id: "u", $device_id: "d", time: seconds + 1 })],
    ["a different insert id", view({ distinct_id: "u", $device_id: "d", $insert_id: "j" })],
    ["a different name", { ...view({ distinct_id: "u", $device_id: "d" }), event: "Click" }],
  ])("has a different uuid if it has %s", async (_, line) => {
    expect(await uuidOf(line)).not.toBe(await uuidOf(monday));
  });

  test("gets a unique uuid if its insert id is the nil UUID", async () => {
    const nil = { $insert_id: "00000000-0000-0000-0000-000000000000", distinct_id: "u" };
    const { batch } = await eventsOf([view(nil), view(nil)]);
    expect(new Set(batch.map(({ uuid }) => uuid)).size).toBe(2);
  });
});

const uuid = "3b241101-e2bb-4255-8caf-4136c566a962";
const oldDevice = "17d5d4b7f5b6a1-0e5c8b4a1b2c3d-1f396452-1ea000-17d5d4b7f5c7d0";

describe("import from Mixpanel", () => {
  test.each([
    ["a number", "40000", "anon-k4"],
    ["a numeric JSON value", 40_000, "anon-k4"],
    ["capitals", "EMP-5", uuid],
    ["a word", "ann", "$device:x"],
  ])("links the sending id to the event's user, whose id is %s", async (_, user, before) => {
    const buy = view({ distinct_id: user, $distinct_id_before_identity: before });
    const { batch, notes } = await eventsOf([buy, buy]);
    expect(notes).toEqual([]);
    expect(batch).toMatchObject([
      { event: "View", distinct_id: user },
      { event: "$identify", distinct_id: user, properties: { $anon_distinct_id: before } },
      { event: "View", distinct_id: user },
    ]);
  });

  test.each<[string, JsonObject, readonly string[], string]>([
    [
      "device",
      { $device_id: "lower-anon", distinct_id: "x" },
      ["lower-anon", "CUST-100"],
      "CUST-100",
    ],
    ["user", { $user_id: uuid, distinct_id: "x" }, [oldDevice, uuid], uuid],
    [
      "user",
      { $user_id: uuid.toUpperCase(), distinct_id: "x" },
      [uuid, uuid.toUpperCase()],
      uuid.toUpperCase(),
    ],
  ])("links the ids of a $merge to the %s in the file", async (_, shown, ids, main) => {
    const merge = { event: "$merge", properties: { time: seconds, $distinct_ids: ids } };
    const { batch } = await eventsOf([view(shown), merge]);
    expect(batch.at(-1)).toMatchObject({
      event: "$merge_dangerously",
      properties: { alias: main },
    });
  });

  test("links 1,500 ids of a single $merge in linear time", async () => {
    const ids = Array.from({ length: 1_500 }, (_, n) => `user-${n}`);
    const merge = {
      event: "$merge",
      properties: { time: seconds, $distinct_ids: [...ids, 7, "7"] },
    };
    const { batch } = await eventsOf([merge]);
    expect(batch.length).toBe(1_500);
    expect(JSON.stringify(batch).length).toBeLessThan(500_000);
  });

  const link = { event: "$identify", distinct_id: "u" };

  test("links a device to its user once per file", async () => {
    const { batch, numbers } = await eventsOf([
      view({ distinct_id: "$device:d", $device_id: "d", $insert_id: "1" }),
      view({ distinct_id: "u", $device_id: "d", $user_id: "u", $insert_id: "2" }),
      view({ distinct_id: "u", $device_id: "d", $user_id: "u", $insert_id: "3" }),
    ]);
    expect(batch).toMatchObject([
      { event: "View", distinct_id: "$device:d" },
      { event: "View", distinct_id: "u" },
      { ...link, properties: { $anon_distinct_id: "$device:d" } },
      { event: "View", distinct_id: "u" },
    ]);
    expect(numbers).toEqual([1, 2, 2, 3]);
    expect(new Set(batch.map(({ uuid }) => uuid)).size).toBe(4);
  });

  test("links a device to its user without a warning", async () => {
    const both = view({ distinct_id: "u", $device_id: "d", $user_id: "u" });
    const file = fileWith(`${JSON.stringify(both)}\n`);
    const { out, error } = await runImport(["--dry-run", "--strict", file]);
    expect(error).toBeUndefined();
    expect(out).toContain("2 events would be stored (1 linking a device to its user), 0 not");
  });

  test("creates the same uuid for a device link in every file", async () => {
    const [one, two] = ["1", "2"].map((id) =>
      view({ distinct_id: "u", $device_id: "d", $user_id: "u", $insert_id: id }),
    ) as [JsonObject, JsonObject];
    const [first, second] = [await eventsOf([one]), await eventsOf([two])];
    expect(first.batch[1]!["uuid"]).toBe(second.batch[1]!["uuid"]);
  });

  test.each<[string, JsonObject, JsonObject]>([
    [
      "as SDKs send it",
      { distinct_id: "u", $anon_distinct_id: "$device:d" },
      { $anon_distinct_id: "$device:d" },
    ],
    [
      "by the device",
      { distinct_id: "u", $user_id: "u", $device_id: "d" },
      { $anon_distinct_id: "$device:d" },
    ],
    [
      "of the original merge",
      { distinct_id: "m", $identified_id: "u", $anon_id: "a" },
      { $anon_distinct_id: "a" },
    ],
  ])("links a device to its user by a $identify %s", async (_, properties, linked) => {
    const { batch } = await eventsOf([
      { event: "$identify", properties: { time: seconds, ...properties } },
    ]);
    expect(batch).toMatchObject([{ ...link, properties: linked }]);
  });

  test("uses the user or device of an event without a distinct id", async () => {
    const { batch } = await eventsOf([view({ $user_id: "u" }), view({ $device_id: "d" })]);
    expect(batch.map(({ distinct_id: id }) => id)).toEqual(["u", "$device:d"]);
  });

  test.each<[string, JsonObject, readonly (readonly [string, string])[]]>([
    ["of two users", { distinct_id: "b", $distinct_ids: ["a", "b"] }, [["a", "b"]]],
    ["of a device", { $distinct_ids: ["$device:d", "u"] }, [["$device:d", "u"]]],
    [
      "of a device and a number",
      { $distinct_ids: ["$device:x1", "20251"] },
      [["$device:x1", "20251"]],
    ],
    [
      "of a device and capitals",
      { $distinct_ids: ["$device:x1", "CUST-1"] },
      [["$device:x1", "CUST-1"]],
    ],
    ["of a UUID", { $distinct_ids: [uuid, "12345"] }, [[uuid, "12345"]]],
    [
      "of a UUID that is the second id",
      { $distinct_ids: ["CUST-100", uuid] },
      [[uuid, "CUST-100"]],
    ],
    [
      "of a UUID in upper case",
      { distinct_id: uuid.toUpperCase(), $distinct_ids: [uuid.toUpperCase(), "ABC-9"] },
      [[uuid.toUpperCase(), "ABC-9"]],
    ],
    ["of an older SDK", { $distinct_ids: [oldDevice, "ann"] }, [[oldDevice, "ann"]]],
    ["as text", { $distinct_ids: '["u","$device:d"]' }, [["$device:d", "u"]]],
    [
      "of three",
      { $distinct_ids: ["u", "v", "w"] },
      [
        ["v", "u"],
        ["w", "u"],
      ],
    ],
  ])("links ids by a $merge %s", async (_, properties, links) => {
    const line = { event: "$merge", properties: { time: seconds, ...properties } };
    const { batch, notes } = await eventsOf([line]);
    expect(notes).toEqual([]);
    expect(batch).toMatchObject(
      links.map(([other, main]) => ({
        event: "$merge_dangerously",
        distinct_id: other,
        properties: { alias: main },
        timestamp: new Date(seconds * 1_000).toISOString(),
      })),
    );
  });

  test.each([[["a"]], [[]], ["x"], [["a", "a"]], [["a", null]]])(
    "counts a loss for a $merge of %j",
    async (ids) => {
      const line = { event: "$merge", properties: { time: seconds, $distinct_ids: ids } };
      const { batch, notes } = await eventsOf([line]);
      expect(batch).toEqual([]);
      expect(notes).toMatchObject([{ code: "merge_without_ids", isStored: false }]);
    },
  );
});

describe("the time zone of a Mixpanel project", () => {
  test("converts local times and does not change uuids", async () => {
    const [winter, summer] = [Date.UTC(2022, 0, 15, 12) / 1_000, Date.UTC(2022, 6, 15, 12) / 1_000];
    const lines = [winter, summer, "2022-07-15T12:00:00"].map((time) =>
      view({ distinct_id: "u", time }),
    );
    const { batch } = await eventsOf(lines, "America/New_York");
    expect(batch.map(({ timestamp }) => timestamp)).toEqual([
      "2022-01-15T17:00:00.000Z",
      "2022-07-15T16:00:00.000Z",
      "2022-07-15T16:00:00.000Z",
    ]);
    const { batch: utc } = await eventsOf(lines);
    expect(batch.map(({ uuid }) => uuid)).toEqual(utc.map(({ uuid }) => uuid));
  });

  test.each([
    ["2026-07-01T10:00:00", "2026-07-01T08:00:00.000Z"],
    ["2026-07-01 10:00", "2026-07-01T08:00:00.000Z"],
    [" 2026-07-01 10:00:00.5 ", "2026-07-01T08:00:00.500Z"],
    ["2026/07/01 10:00:00", "2026-07-01T08:00:00.000Z"],
    ["07/01/2026 10:00:00", "2026-07-01T08:00:00.000Z"],
    ["July 1, 2026 at 10:00 AM", "2026-07-01T08:00:00.000Z"],
    ["2026-07-01", "2026-06-30T22:00:00.000Z"],
    ["2026/01/01", "2025-12-31T23:00:00.000Z"],
    [" 1782900000 ", "2026-07-01T08:00:00.000Z"],
    ["1782900000.25", "2026-07-01T08:00:00.250Z"],
    [1_782_900_000_000, "2026-07-01T08:00:00.000Z"],
    [50_000_000, "1971-08-02T15:53:20.000Z"],
  ])("applies to %j", async (time, timestamp) => {
    const { batch } = await eventsOf([view({ distinct_id: "u", time })], "Europe/Berlin");
    expect(batch[0]!["timestamp"]).toBe(timestamp);
  });

  test.each([
    "2026-07-01T10:00:00Z",
    "2026-07-01T10:00:00+05:30",
    "2026/07/01 10:00:00 GMT",
    "Wed, 01 Jul 2026 10:00:00 -0700",
    "2026-07-01T10:00:00+05:30[Asia/Kolkata]",
  ])("does not apply to %j, which contains a time zone", async (time) => {
    const { batch } = await eventsOf([view({ distinct_id: "u", time })], "Europe/Berlin");
    expect(batch[0]!["timestamp"]).toBe(time);
  });

  test.each([
    "2026-02-31 10:00:00",
    "2026-02-29",
    "2025/02/29",
    "2026-02-03 24:00:00",
    "2026-04-31T00:00",
    "2026-13-01 10:00:00",
    "02/30/2026",
    "31.02.2026",
    "soon",
  ])("counts a loss for the invalid time %j", async (time) => {
    const line = JSON.stringify(view({ distinct_id: "u", time }));
    const file = fileWith(`${line}\n`);
    const { err, error } = await runImport(["--dry-run", "--time-zone", "Europe/Berlin", file]);
    expect(err).toContain(`${file}:1: stored: invalid_timestamp`);
    expect(error).toMatchObject({ exitCode: 1 });
  });

  test("does not change a zero time", async () => {
    const times = ["1970-01-01 00:00:00", "0001-01-01T00:00:00", 0];
    const lines = times.map((time) => view({ distinct_id: "u", time }));
    const { batch } = await eventsOf(lines, "Europe/Berlin");
    expect(batch.map(({ timestamp }) => timestamp)).toEqual([times[0], times[1], undefined]);
  });

  test.each([
    [50_000_000, "1971-08-02T16:53:20.000Z"],
    [99_999_999, "1973-03-03T09:46:39.000Z"],
    [86_400, "1970-01-02T00:00:00.000Z"],
    [100_000_000, "1973-03-03T09:46:40.000Z"],
  ])("is not needed for the number %d", async (time, timestamp) => {
    const { batch } = await eventsOf([view({ distinct_id: "u", time })]);
    expect(new Date(`${batch[0]!["timestamp"]}Z`.replace("ZZ", "Z")).toISOString()).toBe(timestamp);
  });

  const line = `${JSON.stringify(view({ distinct_id: "u" }))}\n`;
  test.each([
    ["an unknown zone", ["--time-zone", "Mars/Olympus"], line, '(got "Mars/Olympus")'],
    [
      "a format without local times",
      ["--time-zone", "UTC", "--format", "segment"],
      line,
      "has no local times",
    ],
    [
      "a file of a format without local times",
      ["--time-zone", "+05:30"],
      '{"event":"e","distinct_id":"u"}\n',
      "has no local times",
    ],
  ])("is rejected if the import has %s", async (_, args, content, said) => {
    const { error } = await runImport(["--dry-run", ...args, fileWith(content)]);
    expect(error?.message).toContain(said);
  });

  test("may be an offset", async () => {
    const { error } = await runImport(["--dry-run", "--time-zone", "-05:00", fileWith(line)]);
    expect(error).toBeUndefined();
  });
});
