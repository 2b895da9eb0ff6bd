import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();

interface Note {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
}

async function warningsOf(body: unknown): Promise<Note[]> {
  const answer = await gateway.post("/batch/", body);
  expect(answer.status).toBe(200);
  return (answer.json["warnings"] ?? []) as Note[];
}

describe("the warning for a dropped event", () => {
  test.each<[string, object, string, RegExp]>([
    [
      "evnt",
      { evnt: "e", distinct_id: "u" },
      "no_event",
      /^event is absent.*; you sent "evnt": write "event"$/,
    ],
    ["name", { name: "e", distinct_id: "u" }, "no_event", /"name": write "event"$/],
    [
      "events instead of batch",
      { events: [{ event: "e", distinct_id: "u" }] },
      "no_event",
      /"events": write "batch"$/,
    ],
    [
      "no similar name",
      { distinct_id: "u", colour: "blue" },
      "no_event",
      /^event is absent, and must be text: the event is not stored$/,
    ],
    ["a number", { event: 5, distinct_id: "u" }, "no_event", /^event is a number, /],
    [
      "distinctId",
      { event: "e", distinctId: "u" },
      "no_distinct_id",
      /"distinctId": write "distinct_id"$/,
    ],
    [
      "userId in properties",
      { event: "e", properties: { userId: 7 } },
      "no_distinct_id",
      /"userId": write "distinct_id"$/,
    ],
    [
      "propertes",
      { event: "e", propertes: { distinct_id: "u" } },
      "no_distinct_id",
      /"propertes": write "properties"$/,
    ],
    [
      "an empty distinct_id",
      { event: "e", distinct_id: "" },
      "no_distinct_id",
      /^distinct_id is empty: the event is not stored$/,
    ],
    [
      "an empty distinct_id in properties",
      { event: "e", properties: { distinct_id: "" } },
      "no_distinct_id",
      /^properties.distinct_id is empty/,
    ],
    [
      "events instead of batch, and another name escaped",
      { events: [{ event: "e", distinct_id: "u" }], evnt: 1, distinct_id: "u" },
      "no_event",
      /"events": write "batch"$/,
    ],
    [
      "an escaped name",
      JSON.parse('{"distinct_id":"u","ev\\u006et":"e"}') as object,
      "no_event",
      /"evnt": write "event"$/,
    ],
  ])("names the likely typo in a single event with %s", async (_, event, code, detail) => {
    const body = JSON.stringify({ api_key: project.key, ...event }).replace(
      '"evnt"',
      '"ev\\u006et"',
    );
    const warnings = await warningsOf(body);
    expect(warnings).toEqual([{ index: 0, code, detail: expect.stringMatching(detail) }]);
    expect(await gateway.events(project)).toEqual([]);
  });

  test("does not suggest batch for an item of an array", async () => {
    const own = await gateway.project();
    const good = { event: "e", distinct_id: "u" };
    const items = [
      { ...good, api_key: own.key },
      { events: [good], distinct_id: "u" },
    ];
    const escaped = JSON.stringify(items).replace(
      '"distinct_id":"u"}]',
      '"di\\u0073tinct_id":"u"}]',
    );
    for (const body of [items, escaped]) {
      const detail = "event is absent, and must be text: the event is not stored";
      expect(await warningsOf(body)).toEqual([{ index: 1, code: "no_event", detail }]);
    }
  });

  test.each<[string, unknown, string, string]>([
    ["null", null, "not_an_object", "The item is null, and must be an object: it is not stored"],
    [
      "text",
      "evnt",
      "not_an_object",
      "The item is a string, and must be an object: it is not stored",
    ],
    [
      "an array",
      [{}],
      "not_an_object",
      "The item is an array, and must be an object: it is not stored",
    ],
    [
      "JSON encoded twice",
      JSON.stringify({ event: "e" }),
      "not_an_object",
      "The item is a string that looks like JSON encoded twice, and must be an object: it is not stored",
    ],
    [
      "an empty object",
      {},
      "no_event",
      "event is absent, and must be text: the event is not stored",
    ],
  ])("states what the item is: %s", async (_, item, code, detail) => {
    const own = await gateway.project();
    const good = { event: "e", distinct_id: "u" };
    const warnings = await warningsOf({ api_key: own.key, batch: [good, good, item, good] });
    expect(warnings).toEqual([{ index: 2, code, detail }]);
    expect(await gateway.events(own)).toHaveLength(3);
  });

  test("suggests event, but not batch, for an item of an array", async () => {
    const events = [{ event: "e", distinct_id: "u" }];
    const [note] = await warningsOf([{ api_key: project.key, events }]);
    expect(note).toEqual({
      index: 0,
      code: "no_event",
      detail: expect.not.stringContaining("batch"),
    });
    const [slip] = await warningsOf([{ token: project.key, evnt: "e", distinct_id: "u" }]);
    expect(slip?.detail).toMatch(/; you sent "evnt": write "event"$/);
  });

  test.each<[object, string, RegExp]>([
    [
      { event: "$create_alias", properties: { Alias: "a" } },
      "missing_alias",
      /"Alias": write "alias"$/,
    ],
    [
      { event: "$create_alias", propertys: { alias: "a" } },
      "missing_alias",
      /"propertys": write "properties"$/,
    ],
    [
      { event: "$groupidentify", properties: { group_type: "t" } },
      "missing_group",
      /"group_type": write "\$group_type"$/,
    ],
    [
      { event: "survey sent", properties: { surveyId: "s" } },
      "missing_survey_id",
      /"surveyId": write "\$survey_id"$/,
    ],
  ])("has the same form for an event stored without effect: %j", async (item, code, detail) => {
    const sent = { distinct_id: "u", ...item };
    const notes = await warningsOf({ api_key: project.key, batch: [sent] });
    expect(notes).toEqual([{ index: 0, code, detail: expect.stringMatching(detail) }]);
  });

  test("is one of at most 20 warnings", async () => {
    const odd = { event: "e", distinct_id: "u", uuid: "x" };
    const batch = [
      ...Array.from({ length: 30 }, () => odd),
      {},
      ...Array.from({ length: 40_000 }, () => 5),
    ];
    const answer = await gateway.post("/batch/", { api_key: project.key, batch });
    expect(answer.json).toMatchObject({ accepted: 30, dropped: 40_001, warnings_total: 40_031 });
    const named = answer.json["warnings"] as Note[];
    expect(named.map(({ index, code }) => [index, code])).toEqual([
      [30, "no_event"],
      ...Array.from({ length: 19 }, (_, index) => [31 + index, "not_an_object"]),
    ]);
    const mixed = [...Array.from({ length: 3 }, () => odd), {}, odd];
    const few = await warningsOf({ api_key: project.key, batch: mixed });
    expect(few.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
  });

  test("shows no values and no unknown member names", async () => {
    const secret = "phc_0123456789abcdefghij";
    const items = [
      { [secret]: "e", distinct_id: "u" },
      { evnt: secret, distinct_id: "u" },
      { event: "e", distinctId: secret },
      { event: "$create_alias", distinct_id: "u", properties: { Alias: secret } },
    ];
    const answer = await gateway.post("/batch/", { api_key: project.key, batch: items });
    expect(answer.json).toMatchObject({ accepted: 1, dropped: 3, warnings_total: 4 });
    expect(JSON.stringify(answer.json)).not.toContain(secret);
  });

  test("is counted by code", async () => {
    const text = await gateway.metrics();
    for (const code of ["no_event", "no_distinct_id", "not_an_object"]) {
      expect(text).toMatch(
        new RegExp(
          `^penstock_events_total{lane="live",outcome="dropped",reason="${code}"} [1-9]`,
          "m",
        ),
      );
    }
  });
});
