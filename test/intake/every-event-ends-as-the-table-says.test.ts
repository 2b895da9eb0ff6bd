// The outcome table of the README, row by row: what is stored, what is left out, what is an item error, what is a warning.
// Each case runs as a single event and as an item of a batch between two good neighbours, which must not be touched by it.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoredEvent, startTestGateway, type TestGateway } from "../kit/gateway.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
});

afterAll(async () => {
  await gateway.stop();
});

interface Outcome {
  /** Fields the stored record must have; absent: nothing is stored. */
  stored?: Record<string, unknown>;
  error?: string;
  /** The warning of an item that is left out. */
  dropped?: string;
  warnings?: string[];
}

type Case = [title: string, item: unknown, outcome: Outcome];

const good = { event: "neighbour", distinct_id: "n", uuid: "0199b1c2-0000-7000-8000-00000000000f" };
const longId = "é".repeat(250);

const cases: Case[] = [
  ["no event", { distinct_id: "u" }, { dropped: "no_event" }],
  ["event null", { event: null, distinct_id: "u" }, { dropped: "no_event" }],
  ["event a number", { event: 5, distinct_id: "u" }, { dropped: "no_event" }],
  ["event an object", { event: {}, distinct_id: "u" }, { dropped: "no_event" }],
  ["event empty", { event: "", distinct_id: "u" }, { dropped: "no_event" }],
  ["event white space", { event: " \t\u2003", distinct_id: "u" }, { dropped: "no_event" }],
  ["no distinct id", { event: "e" }, { dropped: "no_distinct_id" }],
  ["distinct id null", { event: "e", distinct_id: null }, { dropped: "no_distinct_id" }],
  ["distinct id empty", { event: "e", distinct_id: "" }, { dropped: "no_distinct_id" }],
  ["distinct id white space", { event: "e", distinct_id: " \u00a0" }, { dropped: "no_distinct_id" }],
  [
    "distinct id empty does not fall back",
    { event: "e", distinct_id: "", properties: { distinct_id: "p" } },
    { dropped: "no_distinct_id" },
  ],
  ["distinct id in properties", { event: "e", properties: { distinct_id: "p" } }, { stored: { distinct_id: "p" } }],
  [
    "distinct id null falls back",
    { event: "e", distinct_id: null, properties: { distinct_id: 7 } },
    { stored: { distinct_id: "7" } },
  ],
  [
    "top-level distinct id goes first",
    { event: "e", distinct_id: "top", properties: { distinct_id: "p" } },
    { stored: { distinct_id: "top" } },
  ],
  ["distinct id a number", { event: "e", distinct_id: 12.5 }, { stored: { distinct_id: "12.5" } }],
  ["distinct id false", { event: "e", distinct_id: false }, { stored: { distinct_id: "false" } }],
  ["distinct id an array", { event: "e", distinct_id: [1, "a"] }, { stored: { distinct_id: '[1,"a"]' } }],
  [
    "distinct id an object",
    { event: "e", distinct_id: { a: { b: null } } },
    { stored: { distinct_id: '{"a":{"b":null}}' } },
  ],
  [
    "distinct id of 250 characters",
    { event: "e", distinct_id: longId },
    { stored: { distinct_id: longId.slice(0, 200) } },
  ],
  [
    "distinct id of 200 astral characters",
    { event: "e", distinct_id: "😀".repeat(201) },
    { stored: { distinct_id: "😀".repeat(200) } },
  ],
  ["NUL in the distinct id", { event: "e", distinct_id: "a\0b" }, { stored: { distinct_id: "a\ufffdb" } }],
  ["lone surrogate in the event", { event: "e\ud800", distinct_id: "u" }, { stored: { event: "e\ufffd" } }],
  ["lone surrogate in the distinct id", { event: "e", distinct_id: "\udc00u" }, { stored: { distinct_id: "\ufffdu" } }],
  [
    "lone surrogates in properties",
    { event: "e", distinct_id: "u", properties: { "k\ud800": ["v\udfff"] } },
    { stored: { properties: { "k\ufffd": ["v\ufffd"] } } },
  ],
  ["properties absent", { event: "e", distinct_id: "u" }, { stored: { properties: {} } }],
  ["properties null", { event: "e", distinct_id: "u", properties: null }, { stored: { properties: {} } }],
  ["properties a string", { event: "e", distinct_id: "u", properties: "p" }, { error: "invalid_properties" }],
  ["properties an array", { event: "e", distinct_id: "u", properties: [] }, { error: "invalid_properties" }],
  ["$set not an object", { event: "e", distinct_id: "u", $set: 1 }, { error: "invalid_properties" }],
  ["$set_once not an object", { event: "e", distinct_id: "u", $set_once: "x" }, { error: "invalid_properties" }],
  [
    "properties.$set not an object",
    { event: "e", distinct_id: "u", properties: { $set: [] } },
    { error: "invalid_properties" },
  ],
  [
    "properties.$group_set not an object",
    { event: "e", distinct_id: "u", properties: { $group_set: true } },
    { error: "invalid_properties" },
  ],
  [
    "properties.$groups not an object",
    { event: "e", distinct_id: "u", properties: { $groups: "g" } },
    { error: "invalid_properties" },
  ],
  [
    "objects that are null",
    { event: "e", distinct_id: "u", $set: null, $set_once: null, properties: { $set: null, $groups: null } },
    { stored: { properties: { $set: null, $groups: null } } },
  ],
  [
    "$set and $set_once",
    { event: "e", distinct_id: "u", $set: { a: 1 }, $set_once: { b: 2 } },
    { stored: { $set: { a: 1 }, $set_once: { b: 2 } } },
  ],
  ["alias", { event: "$create_alias", distinct_id: "u", properties: { alias: "a" } }, { stored: { kind: "alias" } }],
  ["alias missing", { event: "$create_alias", distinct_id: "u", properties: {} }, { error: "missing_alias" }],
  ["alias without properties", { event: "$create_alias", distinct_id: "u" }, { error: "missing_alias" }],
  ["alias empty", { event: "$create_alias", distinct_id: "u", properties: { alias: "" } }, { error: "missing_alias" }],
  [
    "alias a number",
    { event: "$create_alias", distinct_id: "u", properties: { alias: 1 } },
    { error: "missing_alias" },
  ],
  [
    "group identify",
    {
      event: "$groupidentify",
      distinct_id: "u",
      properties: { $group_type: "t", $group_key: "k", $group_set: { n: 1 } },
    },
    { stored: { kind: "group_identify" } },
  ],
  [
    "group identify, other spelling",
    { event: "$group_identify", distinct_id: "u", properties: { $group_type: "t", $group_key: "k", $group_set: {} } },
    { stored: { kind: "group_identify" } },
  ],
  [
    "group without key",
    { event: "$groupidentify", distinct_id: "u", properties: { $group_type: "t" } },
    { error: "missing_group" },
  ],
  [
    "group without type",
    { event: "$group_identify", distinct_id: "u", properties: { $group_key: "k" } },
    { error: "missing_group" },
  ],
  [
    "group without $group_set",
    { event: "$groupidentify", distinct_id: "u", properties: { $group_type: "t", $group_key: "k" } },
    { stored: { kind: "group_identify" }, warnings: ["missing_group_set"] },
  ],
  [
    "survey sent",
    { event: "survey sent", distinct_id: "u", properties: { $survey_id: "s" } },
    { stored: { kind: "survey" } },
  ],
  ["survey shown without id", { event: "survey shown", distinct_id: "u" }, { error: "missing_survey_id" }],
  [
    "survey dismissed without id",
    { event: "survey dismissed", distinct_id: "u", properties: { $survey_id: null } },
    { error: "missing_survey_id" },
  ],
  ["identify with $set", { event: "$identify", distinct_id: "u", $set: { a: 1 } }, { stored: { kind: "identify" } }],
  [
    "identify with properties.$set",
    { event: "$identify", distinct_id: "u", properties: { $set: {} } },
    { stored: { kind: "identify" } },
  ],
  [
    "identify without $set",
    { event: "$identify", distinct_id: "u" },
    { stored: { kind: "identify" }, warnings: ["missing_set"] },
  ],
  [
    "pageview",
    { event: "$pageview", distinct_id: "u", properties: { $current_url: "https://x" } },
    { stored: { kind: "pageview" } },
  ],
  [
    "pageview without url",
    { event: "$pageview", distinct_id: "u" },
    { stored: { kind: "pageview" }, warnings: ["missing_current_url"] },
  ],
  [
    "screen",
    { event: "$screen", distinct_id: "u", properties: { $screen_name: "home" } },
    { stored: { kind: "screen" } },
  ],
  [
    "screen without name",
    { event: "$screen", distinct_id: "u" },
    { stored: { kind: "screen" }, warnings: ["missing_screen_name"] },
  ],
  [
    "timestamp",
    { event: "e", distinct_id: "u", timestamp: "2026-01-02T03:04:05.678Z" },
    { stored: { timestamp: "2026-01-02T03:04:05.678Z" } },
  ],
  [
    "timestamp with an offset",
    { event: "e", distinct_id: "u", timestamp: "2026-01-02T03:04:05+01:00" },
    { stored: { timestamp: "2026-01-02T02:04:05.000Z" } },
  ],
  [
    "timestamp without a zone",
    { event: "e", distinct_id: "u", timestamp: "2026-01-02T03:04:05" },
    { stored: { timestamp: "2026-01-02T03:04:05.000Z" } },
  ],
  [
    "timestamp unparseable",
    { event: "e", distinct_id: "u", timestamp: "yesterday" },
    { stored: { timestamp: "received" }, warnings: ["invalid_timestamp"] },
  ],
  [
    "timestamp a number",
    { event: "e", distinct_id: "u", timestamp: 1767323045 },
    { stored: { timestamp: "received" }, warnings: ["invalid_timestamp"] },
  ],
  ["timestamp absent", { event: "e", distinct_id: "u" }, { stored: { timestamp: "received" } }],
  [
    "timestamp far ahead",
    { event: "e", distinct_id: "u", timestamp: "2999-01-02T03:04:05Z" },
    {
      stored: { timestamp: "received", timestamp_sent: "2999-01-02T03:04:05.000Z" },
      warnings: ["timestamp_in_future"],
    },
  ],
  [
    "offset that is no number",
    { event: "e", distinct_id: "u", offset: "12" },
    { stored: { timestamp: "received" }, warnings: ["invalid_offset"] },
  ],
  [
    "$unset that is no list of names",
    { event: "e", distinct_id: "u", $unset: "a" },
    { stored: { properties: {}, $unset: undefined }, warnings: ["invalid_unset"] },
  ],
  [
    "person fields in properties",
    { event: "$set", distinct_id: "u", properties: { $set: { a: 1 }, $set_once: { b: 2 }, $unset: ["c"] } },
    { stored: { kind: "set", $set: { a: 1 }, $set_once: { b: 2 }, $unset: ["c"] } },
  ],
  [
    "properties.$set_once not an object",
    { event: "e", distinct_id: "u", properties: { $set_once: 1 } },
    { error: "invalid_properties" },
  ],
  [
    "uuid",
    { event: "e", distinct_id: "u", uuid: "0199b1c2-1111-7000-8000-00000000000a" },
    { stored: { uuid: "0199b1c2-1111-7000-8000-00000000000a" } },
  ],
  [
    "uuid in upper case",
    { event: "e", distinct_id: "u", uuid: "0199B1C2-1111-7000-8000-00000000000A" },
    { stored: { uuid: "0199b1c2-1111-7000-8000-00000000000a" } },
  ],
  [
    "uuid not a UUID",
    { event: "e", distinct_id: "u", uuid: "nope" },
    { stored: { uuid: "new" }, warnings: ["invalid_uuid"] },
  ],
  ["uuid absent", { event: "e", distinct_id: "u" }, { stored: { uuid: "new" } }],
  ["uuid empty", { event: "e", distinct_id: "u", uuid: "" }, { stored: { uuid: "new" } }],
  [
    "person profile off",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: false } },
    { stored: { person_profile: false } },
  ],
  [
    "person profile on",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: true } },
    { stored: { person_profile: true } },
  ],
  [
    "person profile not a boolean",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: "false" } },
    { stored: { person_profile: true }, warnings: ["invalid_person_profile"] },
  ],
  [
    "an api_key inside an item, unknown fields",
    { event: "e", distinct_id: "u", api_key: "other", library: "x" },
    { stored: { event: "e" } },
  ],
];

const batchOnlyCases: Case[] = [
  ["item null", null, { dropped: "not_an_object" }],
  ["item a number", 1, { dropped: "not_an_object" }],
  ["item a string", "event", { dropped: "not_an_object" }],
  ["item an array", [{ event: "e", distinct_id: "u" }], { dropped: "not_an_object" }],
  ["item empty", {}, { dropped: "no_event" }],
];

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const recordFields = [
  "uuid",
  "project_id",
  "event",
  "distinct_id",
  "timestamp",
  "timestamp_sent",
  "received_at",
  "sent_at",
  "ip",
  "kind",
  "person_profile",
  "historical",
  "properties",
  "$set",
  "$set_once",
  "$unset",
];

function expectRecord(record: StoredEvent | undefined, outcome: Outcome, projectId: string): void {
  expect(record).toBeDefined();
  if (record === undefined) return;
  expect(recordFields).toEqual(expect.arrayContaining(Object.keys(record)));
  expect(record["project_id"]).toBe(projectId);
  expect(record["ip"]).toBe("127.0.0.1");
  expect(record["historical"]).toBe(false);
  expect(Math.abs(Date.parse(record["received_at"] as string) - Date.now())).toBeLessThan(60_000);
  for (const [field, value] of Object.entries(outcome.stored ?? {})) {
    if (field === "timestamp" && value === "received") expect(record["timestamp"]).toBe(record["received_at"]);
    else if (field === "uuid" && value === "new") expect(record["uuid"]).toMatch(uuidV7);
    else expect(record[field]).toEqual(value);
  }
}

function codes(notes: unknown): string[] {
  return ((notes ?? []) as { code: string }[]).map((note) => note.code);
}

function warningsOf({ dropped, warnings = [] }: Outcome): string[] {
  return dropped === undefined ? warnings : [dropped, ...warnings];
}

describe("a single event", () => {
  test.each(cases)("%s", async (_title, item, outcome) => {
    const project = await gateway.project();
    const answer = await gateway.post("/capture/", { ...(item as object), api_key: project.key });
    const events = await gateway.events(project);
    if (outcome.error !== undefined) {
      expect(answer.status).toBe(400);
      expect(answer.json["code"]).toBe(outcome.error);
      expect(events).toEqual([]);
      return;
    }
    const stored = outcome.stored === undefined ? 0 : 1;
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ status: "Ok", accepted: stored, dropped: 1 - stored });
    expect(codes(answer.json["warnings"])).toEqual(warningsOf(outcome));
    expect(events).toHaveLength(stored);
    if (stored === 1) expectRecord(events[0], outcome, project.id);
  });
});

describe("an item of a batch, between two good ones", () => {
  test.each([...cases, ...batchOnlyCases])("%s", async (_title, item, outcome) => {
    const project = await gateway.project();
    const answer = await gateway.post("/batch/", { api_key: project.key, batch: [good, item, good] });
    const events = await gateway.events(project);
    const stored = outcome.stored === undefined ? 0 : 1;
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ status: "Ok", accepted: 2 + stored, dropped: 1 - stored });
    expect(codes(answer.json["errors"])).toEqual(outcome.error === undefined ? [] : [outcome.error]);
    expect(codes(answer.json["warnings"])).toEqual(warningsOf(outcome));
    for (const note of [
      ...((answer.json["errors"] ?? []) as { index: number }[]),
      ...((answer.json["warnings"] ?? []) as { index: number }[]),
    ]) {
      expect(note.index).toBe(1);
    }
    expect(events).toHaveLength(2 + stored);
    expect(events[0]).toMatchObject({ event: "neighbour", distinct_id: "n" });
    expect(events.at(-1)).toMatchObject({ event: "neighbour", distinct_id: "n" });
    if (stored === 1) expectRecord(events[1], outcome, project.id);
  });
});
