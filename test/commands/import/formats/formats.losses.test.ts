import { describe, expect, test } from "vitest";
import { formatNamed } from "../../../../src/commands/import/formats/detect.ts";
import type { JsonObject } from "../../../../src/commands/import/json-text.ts";
import { bodiesOf } from "../bodies.ts";
import { fileWith, runImport } from "../import-kit.ts";

const time = "2024-07-06T12:00:00.000Z";

async function converted(line: object | string, format?: string) {
  const text = typeof line === "string" ? line : JSON.stringify(line);
  const options = format === undefined ? {} : { format: formatNamed(format) };
  const { bodies, notes } = await bodiesOf([`${text}\n`], options);
  const batch = bodies.flatMap((body) => (JSON.parse(body) as { batch: JsonObject[] }).batch);
  return { batch, notes };
}

const text = (value: unknown): string => JSON.stringify(value);

test.each([
  ['["acme"]', "acme"],
  [["acme"], "acme"],
  ["acme", "acme"],
  ["[acme", "[acme"],
  ["17", "17"],
])("import from Amplitude reads the group %j", async (company, group) => {
  const line = { event_type: "e", user_id: "u", event_time: time, groups: { company } };
  for (const groups of [line.groups, text(line.groups)])
    expect((await converted({ ...line, groups })).batch).toMatchObject([
      { properties: { $groups: { company: group } } },
    ]);
});

describe("an object in an imported line", () => {
  const track = { type: "track", messageId: "m", userId: "u", event: "e", timestamp: time };
  const own = { event: "e", distinct_id: "u", timestamp: time };
  test.each<[string, JsonObject, JsonObject]>([
    ["segment properties", { ...track, properties: text({ a: 1 }) }, { properties: { a: 1 } }],
    [
      "segment, encoded twice",
      { ...track, properties: text(text({ a: 1 })) },
      { properties: { a: 1 } },
    ],
    [
      "segment context",
      { ...track, context: text({ ip: "1.2.3.4", traits: { plan: "pro" } }) },
      { properties: { $ip: "1.2.3.4" }, $set: { plan: "pro" } },
    ],
    [
      "segment parts of the context",
      { ...track, context: { traits: text({ a: 1 }), page: text({ path: "/b" }) } },
      { properties: { $pathname: "/b" }, $set: { a: 1 } },
    ],
    [
      "segment traits",
      { ...track, type: "identify", traits: text({ email: "a@b.c" }) },
      { event: "$identify", $set: { email: "a@b.c" } },
    ],
    [
      "segment traits of a group",
      { ...track, type: "group", groupId: 7, traits: text({ name: "Acme" }) },
      { properties: { $group_key: 7, $group_set: { name: "Acme" } } },
    ],
    [
      "amplitude",
      {
        event_type: "e",
        user_id: "u",
        event_time: "2024-07-06 12:00:00",
        event_properties: text({ a: 12 }),
        user_properties: text({ plan: "pro", initial_referrer: "x" }),
        groups: text({ org: ["acme"] }),
      },
      {
        properties: { $amplitude_user_id: "u", a: 12, $groups: { org: "acme" } },
        $set: { plan: "pro" },
        $set_once: { $initial_referrer: "x" },
      },
    ],
    [
      "mixpanel",
      { event: "e", properties: text({ time: 1720267200, distinct_id: "u", a: 1 }) },
      { distinct_id: "u", timestamp: time, properties: { a: 1 } },
    ],
    ["posthog properties", { ...own, properties: text({ a: 1 }) }, { properties: { a: 1 } }],
    [
      "posthog, empty properties",
      { ...own, properties: "", $set: text({ a: 1 }), $set_once: "{}" },
      { properties: {}, $set: { a: 1 }, $set_once: {} },
    ],
    [
      "posthog, within properties",
      { ...own, properties: { $set: text({ a: 1 }), $set_once: text({ b: 2 }), $groups: "{}" } },
      { properties: { $set: { a: 1 }, $set_once: { b: 2 }, $groups: {} } },
    ],
    [
      "posthog elements",
      { ...own, properties: {}, elements: text([{ tag_name: "a" }]) },
      { properties: { $elements: [{ tag_name: "a" }] } },
    ],
  ])("may be JSON text: %s", async (_, line, event) => {
    const { batch, notes } = await converted(line);
    expect(notes).toEqual([]);
    expect(batch).toMatchObject([event]);
  });

  test.each(["[]", [], "", null, "null", " { } "])(
    "may be %j, which counts as an empty object",
    async (value) => {
      const { batch, notes } = await converted({ ...track, properties: value, context: value });
      expect(notes).toEqual([]);
      expect(batch).toMatchObject([{ event: "e", distinct_id: "u", properties: {} }]);
    },
  );

  test.each(["{'a': 1}", "plain", [1], 7, true, "[1,2]"])(
    "must not be %j, which counts as a loss",
    async (value) => {
      for (const field of ["properties", "context"]) {
        const { batch, notes } = await converted({ ...track, [field]: value });
        expect(batch).toMatchObject([{ event: "e", distinct_id: "u" }]);
        const detail = expect.stringContaining(`${field} must be`);
        expect(notes).toMatchObject([
          { line: 1, code: "unreadable_field", isStored: true, detail },
        ]);
      }
    },
  );
});

describe("a numeric time in an imported line", () => {
  const lineOf: Readonly<Record<string, (time: string) => string>> = {
    posthog: (at) => `{"event":"e","distinct_id":"u","uuid":"${uuid}","timestamp":${at}}`,
    mixpanel: (at) => `{"event":"e","properties":{"distinct_id":"u","time":${at}}}`,
    amplitude: (at) => `{"event_type":"e","user_id":"u","event_time":${at}}`,
    segment: (at) => `{"type":"track","event":"e","userId":"u","timestamp":${at}}`,
  };
  const uuid = "018f0000-0000-7000-8000-000000000001";
  const times = [
    "1720267200",
    "1720267200000",
    "1720267200000000",
    "1720267200000000000",
    "1720267200.0",
    '"1720267200"',
    '"1720267200000"',
    '"1720267200000000"',
  ];

  test.each(Object.entries(lineOf))("is read in %s", async (format, line) => {
    for (const at of times) {
      const { batch } = await converted(line(at), format);
      if (format === "posthog" && at.startsWith('"')) continue;
      expect([at, batch[0]!["timestamp"]]).toEqual([at, time]);
    }
    const { batch } = await converted(line("1720267200.125"), format);
    expect(batch[0]!["timestamp"]).toBe("2024-07-06T12:00:00.125Z");
  });

  test.each(Object.entries(lineOf))("is missing if it is zero: %s", async (format, line) => {
    const file = fileWith(`${line("0")}\n`);
    const { err } = await runImport(["--dry-run", "--format", format, file]);
    expect(err).toContain(`${file}:1: stored: missing_timestamp`);
  });

  test.each(["20240706", "20240706120000", "2024", "50000000000"])(
    "is milliseconds if its unit is ambiguous: %s",
    async (at) => {
      for (const [format, line] of Object.entries(lineOf)) {
        const { batch } = await converted(line(at), format);
        expect([format, batch[0]!["timestamp"]]).toEqual([format, Number(at)]);
      }
    },
  );

  test("is read from the first valid time field", async () => {
    const call = { type: "track", event: "e", userId: "u", timestamp: "", originalTimestamp: 0 };
    const { batch } = await converted({ ...call, sentAt: 1720267200000 });
    expect(batch[0]!["timestamp"]).toBe(time);
  });
});

describe("a line with several time fields", () => {
  const call = { type: "track", event: "e", userId: "u" };
  const amplitude = { event_type: "e", user_id: "u" };
  const hidden = [
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00.000Z",
    "0000-00-00 00:00:00",
    "Invalid Date",
    "2024-02-31",
    "",
    " ",
    "0",
    "null",
    null,
    0,
    -1,
    true,
    {},
    { $date: time },
    [time],
    "9999-12-31T23:59:59Z",
    "2026-02-29T10:00:00Z",
  ];

  test.each(hidden)("is imported with the first valid time after the invalid %j", async (bad) => {
    const calls = ["originalTimestamp", "original_timestamp", "sentAt", "sent_at"].map((name) => ({
      ...call,
      timestamp: bad,
      received_at: "2024-07-07T00:00:00Z",
      [name]: time,
    }));
    for (const line of [
      ...calls,
      { ...call, timestamp: bad, originalTimestamp: bad, sentAt: bad, receivedAt: time },
      { ...call, original_timestamp: bad, received_at: time },
      { ...amplitude, event_time: bad, client_event_time: time },
      { ...amplitude, event_time: bad, client_event_time: bad, server_upload_time: time },
      { ...amplitude, event_time: bad, processed_time: 1_720_267_200 },
    ]) {
      const { batch, notes } = await converted(line);
      expect([batch[0]!["timestamp"], notes]).toEqual([time, []]);
    }
  });

  const outcome = async (line: object) => {
    const file = fileWith(`${text(line)}\n`);
    const { err, error } = await runImport(["--dry-run", file]);
    return [/: stored: (\w+)/.exec(err)?.[1], error?.exitCode];
  };

  test("counts as a loss if all time fields are invalid", async () => {
    for (const [first, second] of [
      ["timestamp", "sent_at"],
      ["event_time", "server_upload_time"],
    ] as const) {
      const line = { ...(first === "timestamp" ? call : amplitude) };
      const of = (one: unknown, other: unknown) =>
        outcome({ ...line, [first]: one, [second]: other });
      expect(await of("Invalid Date", "soon")).toEqual(["invalid_timestamp", 1]);
      expect(await of("0001-01-01T00:00:00Z", "soon")).toEqual(["invalid_timestamp", 1]);
      expect(await of("0001-01-01T00:00:00Z", null)).toEqual(["zero_timestamp", undefined]);
      expect(await of(0, "")).toEqual(["missing_timestamp", undefined]);
      expect(await of(null, undefined)).toEqual(["missing_timestamp", undefined]);
    }
  });
});

describe("a loss in an imported line", () => {
  const call = { type: "track", event: "e", userId: "u", timestamp: time };
  const amplitude = { event_type: "e", user_id: "u", event_time: "2024-07-06 12:00:00" };
  test.each<[string, object | string, string]>([
    ["unreadable properties", { ...call, properties: "{" }, "stored: unreadable_field"],
    ["an unreadable time", { ...call, timestamp: "soon" }, "stored: invalid_timestamp"],
    ["a second group", { ...amplitude, groups: { org: ["a", "b"] } }, "stored: more_groups"],
    [
      "properties of groups",
      { ...amplitude, group_properties: { org: { a: { plan: 1 } } } },
      "stored: group_properties",
    ],
    ["an unknown call", { type: "merge", userId: "u" }, "not stored: unknown_call"],
    ["half a line after a complete line", `${text(call)}{"type":"track"`, "not stored: not_json"],
    ["no distinct id", { ...call, userId: " " }, "not stored: no_distinct_id"],
  ])("makes the import fail: %s", async (_, line, said) => {
    const bad = typeof line === "string" ? line : text(line);
    const good = text("event_type" in Object(line) ? amplitude : call);
    const file = fileWith(`${good}\n${`${bad}\n`.repeat(12)}`);
    const { err, error } = await runImport(["--dry-run", file]);
    for (let nth = 2; nth <= 13; nth++) expect(err).toContain(`${file}:${nth}: ${said}`);
    expect(error).toMatchObject({
      exitCode: 1,
      message: expect.stringContaining("not stored: 12"),
    });
    const { error: allowed } = await runImport(["--dry-run", "--allow-loss", file]);
    expect(allowed).toBeUndefined();
  });

  test("is counted as a line or as a part of a line", async () => {
    const unreadable = text({ ...call, properties: "{" });
    const file = fileWith(`${text(call)}\n${unreadable}\n{"type":"track"\n`);
    const { error } = await runImport(["--dry-run", file]);
    expect(error?.message).toContain("not stored: 1 line and 1 part of stored lines, listed above");
  });

  test("is not counted for an intended omission or a missing field", async () => {
    const lines = [
      amplitude,
      { ...amplitude, event_type: "session_start" },
      { ...amplitude, event_time: null },
      { ...amplitude, event_time: "0001-01-01 00:00:00" },
    ];
    const file = fileWith(lines.map((line) => `${text(line)}\n`).join(""));
    const { out, error } = await runImport(["--dry-run", file]);
    expect([error, out]).toEqual([undefined, expect.stringContaining("3 events would be stored")]);
  });

  test("is noted for bytes that are not UTF-8 in a converted line", async () => {
    const bytes = Buffer.from(`${text({ ...call, properties: { a: "?" } })}\n`);
    bytes[bytes.indexOf("?")] = 0xff;
    const { notes } = await bodiesOf([bytes]);
    expect(notes).toMatchObject([{ line: 1, code: "invalid_utf8", isStored: true }]);
  });
});
