import { randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_REQUEST_EVENTS_MAX: "50000" } });
let project = await gateway.project();
const stranger = await gateway.project();

function browserEvent(
  name: string,
  key: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const properties = {
    $current_url: "https://example.com/",
    $lib: "web",
    token: key,
    distinct_id: `of ${name}`,
  };
  return {
    uuid: randomUUID(),
    event: name,
    properties,
    offset: 12,
    ...more,
  };
}

async function storedBy(body: unknown, headers: Record<string, string> = {}) {
  project = await gateway.project();
  const text = JSON.stringify(body).replaceAll("KEY", project.key);
  const answer = await gateway.post(
    "/capture/",
    headers["content-encoding"] === "gzip" ? gzipSync(text) : text,
    headers,
  );
  return { answer, events: await gateway.events(project) };
}

describe("an array of events", () => {
  test.each([
    ["uncompressed", {}] as const,
    ["compressed", { "content-encoding": "gzip" }] as const,
  ])("is stored in order with each distinct id (%s)", async (_title, headers) => {
    const names = ["$pageview", "clicked", "$pageleave"];
    const { answer, events } = await storedBy(
      names.map((name) => browserEvent(name, "KEY")),
      headers,
    );
    expect(answer.json).toEqual({ status: "Ok", accepted: 3, dropped: 0 });
    expect(events.map(({ event, distinct_id }) => [event, distinct_id])).toEqual(
      names.map((name) => [name, `of ${name}`]),
    );
    expect(events[0]).toMatchObject({
      historical: false,
      properties: { token: project.key, $lib: "web" },
    });
  });

  test.each([
    ["uncompressed", {}] as const,
    ["compressed", { "content-encoding": "gzip" }] as const,
  ])("of 40,000 events is stored completely and in order (%s)", async (_title, headers) => {
    const events = Array.from({ length: 40_000 }, (_, index) => ({
      event: `e${index}`,
      distinct_id: "u",
      uuid: `0199b1c2-0000-7000-8000-${index.toString(16).padStart(12, "0")}`,
      ...(index === 30_000 ? { $token: "KEY" } : {}),
    }));
    project = await gateway.project();
    const text = JSON.stringify(events).replaceAll("KEY", project.key);
    for (const _ of [1, 2]) {
      const answer = await gateway.post(
        "/batch/",
        "content-encoding" in headers ? gzipSync(text) : text,
        headers,
      );
      expect(answer.json).toEqual({ status: "Ok", accepted: 40_000, dropped: 0 });
    }
    const stored = await gateway.events(project);
    expect(stored.map(({ event }) => event)).toEqual(events.map(({ event }) => event));
  });

  test("reports errors by index and stores all valid events", async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(99)}1${"}".repeat(99)}`) as unknown;
    const { answer, events } = await storedBy([
      browserEvent("first", "KEY"),
      browserEvent("bad", "KEY", { distinct_id: "u", properties: 7 }),
      7,
      browserEvent("deep", "KEY", { properties: { distinct_id: "u", deep } }),
      browserEvent("cleaned\0", "KEY"),
      { token: "KEY", event: "ownerless" },
      browserEvent("warned", "KEY", { uuid: "none" }),
    ]);
    expect(answer.json).toMatchObject({ accepted: 3, dropped: 4, errors_total: 2 });
    expect(answer.json["errors"]).toMatchObject([
      { index: 1, code: "invalid_properties" },
      { index: 3, code: "too_deep" },
    ]);
    expect(answer.json["warnings"]).toContainEqual(
      expect.objectContaining({ index: 6, code: "invalid_uuid" }),
    );
    expect(events.map(({ event }) => event)).toEqual(["first", "cleaned\ufffd", "warned"]);
  });

  test("with only invalid events is answered with the first event's error", async () => {
    const { answer, events } = await storedBy([
      { token: "KEY", event: "e", distinct_id: "u", properties: "p" },
    ]);
    expect([answer.status, answer.json["code"]]).toEqual([400, "invalid_properties"]);
    expect(events).toEqual([]);
  });

  test("has only its invalid bytes replaced if it is not UTF-8", async () => {
    project = await gateway.project();
    const text = JSON.stringify([
      browserEvent("good", project.key),
      browserEvent("caf#", project.key),
    ]);
    const body = Buffer.from(text.replace("caf#", "caf\xe9"), "latin1");
    const answer = await gateway.post("/capture/", body);
    expect(answer.json).toMatchObject({
      accepted: 2,
      warnings: [{ index: 1, code: "invalid_utf8" }],
    });
    expect((await gateway.events(project)).map(({ event }) => event)).toEqual([
      "good",
      "caf\ufffd",
    ]);
  });

  test("is live even if one of its events has `historical_migration`", async () => {
    const inner = { historical_migration: true, batch: [{ event: "inner", distinct_id: "u" }] };
    const { answer, events } = await storedBy([browserEvent("outer", "KEY", inner)]);
    expect(answer.json).toEqual({ status: "Ok", accepted: 1, dropped: 0 });
    expect(events).toMatchObject([{ event: "outer", historical: false }]);
  });

  describe("the API key of an array", () => {
    const event = { event: "e", distinct_id: "u" };

    test.each([
      ["in api_key", [{ ...event, api_key: "KEY" }]],
      ["in token", [{ ...event, token: "KEY" }]],
      ["in $token", [{ ...event, $token: "KEY" }]],
      ["in properties", [{ ...event, properties: { token: "KEY" } }]],
      ["in one event of several", [event, { ...event, token: "KEY" }, event]],
      [
        "next to empty values",
        [{ ...event, api_key: null, token: "", $token: "KEY", properties: { token: "other" } }],
      ],
      [
        "with white space around it",
        [
          { ...event, token: " KEY\n" },
          { ...event, token: "KEY" },
        ],
      ],
      [
        "at the top level rather than in properties",
        [{ ...event, token: "KEY", properties: { token: "other" } }],
      ],
    ])("is read %s", async (_title, body) => {
      const { answer, events } = await storedBy(body);
      expect(answer.json).toEqual({ status: "Ok", accepted: body.length, dropped: 0 });
      expect(events).toHaveLength(body.length);
    });

    test.each([
      ["in $token", { ...event, $token: "KEY" }],
      ["in properties", { ...event, properties: { token: "KEY" } }],
      [
        "under escaped names",
        '{"event":"e","distinct_id":"u","\\u0070roperties":{"t\\u006fken":"KEY"}}',
      ],
    ])("is read %s for a single event", async (_title, body) => {
      project = await gateway.project();
      const text = (typeof body === "string" ? body : JSON.stringify(body)).replace(
        "KEY",
        project.key,
      );
      const answer = await gateway.post("/capture/", text);
      expect(answer.json).toEqual({ status: "Ok", accepted: 1, dropped: 0 });
      expect(await gateway.events(project)).toMatchObject([{ event: "e", distinct_id: "u" }]);
    });

    test("is not read from an event in an envelope", async () => {
      const batch = [{ ...event, token: stranger.key, properties: { token: stranger.key } }];
      const { answer, events } = await storedBy({ token: "KEY", batch });
      expect(answer.json).toEqual({ status: "Ok", accepted: 1, dropped: 0 });
      expect(events).toHaveLength(1);
      expect((await gateway.post("/batch/", { batch, $token: project.key })).json["code"]).toBe(
        "missing_api_key",
      );
    });

    test.each([
      ["it is missing", () => [event, 7, [event]], 401, "missing_api_key"],
      [
        "it is not a string",
        (key: string) => [{ ...event, api_key: 7, token: key }],
        401,
        "missing_api_key",
      ],
      ["it is unknown", () => [{ ...event, token: "phc_nobody" }], 401, "unknown_api_key"],
      ["it is a personal key", () => [{ ...event, token: "phx_somebody" }], 401, "unknown_api_key"],
      [
        "it is too long",
        (key: string) => [{ ...event, token: key.padEnd(500, "x") }],
        401,
        "unknown_api_key",
      ],
      [
        "it is not ASCII",
        (key: string) => [{ ...event, token: `${key}é` }],
        401,
        "unknown_api_key",
      ],
      [
        "two events have different keys",
        (key: string) => [
          { ...event, token: key },
          { ...event, token: "phc_nobody" },
        ],
        401,
        "unknown_api_key",
      ],
      ["the array is empty", () => [], 400, "invalid_payload"],
      [
        "there are too many events",
        (key: string) => Array(50_001).fill({ token: key }),
        413,
        "too_many_events",
      ],
    ] as const)("is rejected if %s", async (_title, bodyOf, status, code) => {
      project = await gateway.project();
      const answer = await gateway.post("/capture/", bodyOf(project.key));
      expect([answer.status, answer.json["code"]]).toEqual([status, code]);
      expect(await gateway.events(project)).toEqual([]);
    });

    test("is rejected if two events have keys of different projects", async () => {
      const events = Array.from({ length: 30_000 }, (_, index) => ({
        ...event,
        token: index === 29_999 ? stranger.key : project.key,
      }));
      const answer = await gateway.post("/capture/", events);
      expect([answer.status, answer.json["code"]]).toEqual([401, "unknown_api_key"]);
      expect(answer.json["detail"]).toContain("29999");
      expect(JSON.stringify(answer.json)).not.toContain(stranger.key);
      expect(await gateway.events(stranger)).toEqual([]);
    });
  });
});
