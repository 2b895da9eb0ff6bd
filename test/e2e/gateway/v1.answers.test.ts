import { randomUUID } from "node:crypto";
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { outcomes, postV1, v1Body, v1Event, v1Headers } from "../../kit/v1-requests.ts";

const gateway = await gatewayForFile({
  nats: { maxPayload: 65_536 },
  env: { PENSTOCK_BODY_BYTES_MAX: "1048576", PENSTOCK_REQUEST_EVENTS_MAX: "3000" },
});
const project = await gateway.project();

describe("the v1 protocol", () => {
  test("stores an event with its session, options and SDK as properties", async () => {
    const mine = await gateway.project();
    const event = v1Event({
      timestamp: "2026-01-31T12:00:00.5+02:00",
      session_id: "s\u00e9ss",
      window_id: "w",
      options: {
        cookieless_mode: true,
        process_person_profile: "false",
        product_tour_id: 7,
        unknown: [1],
      },
      properties: { price: 1.1, nested: { $session_id: "x" } },
    });
    const headers = { ...v1Headers(mine.key), "PostHog-Request-Timestamp": "" };
    const answer = await postV1(gateway, v1Body([event]), headers);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.headers.get("retry-after")).toBeNull();
    expect(answer.json).toEqual({ results: { [event.uuid]: { result: "ok" } } });
    expect(await gateway.events(mine)).toEqual([
      {
        uuid: event.uuid,
        project_id: mine.id,
        event: "e",
        distinct_id: "u",
        timestamp: "2026-01-31T10:00:00.500Z",
        received_at: expect.any(String) as string,
        ip: "127.0.0.1",
        kind: "custom",
        person_profile: false,
        historical: false,
        properties: {
          $session_id: "s\u00e9ss",
          $window_id: "w",
          $cookieless_mode: true,
          $process_person_profile: false,
          $product_tour_id: "7",
          $lib: "posthog-rs",
          $lib_version: "1.2.3",
          price: 1.1,
          nested: { $session_id: "x" },
        },
      },
    ]);
  });

  test("adds to existing properties", async () => {
    const mine = await gateway.project();
    const own = { $session_id: "own", $lib: "own", $process_person_profile: true };
    const outside = { session_id: "s", options: { process_person_profile: false } };
    const batch = [
      v1Event({ ...outside, properties: own }),
      v1Event({ ...outside, properties: undefined }),
      v1Event({ ...outside, properties: null }),
      v1Event({ properties: {}, session_id: null, window_id: "", options: null }),
    ];
    const spaced = v1Body(batch).replace('"properties":{}', '"properties": {\n }');
    expect(outcomes(await postV1(gateway, spaced, v1Headers(mine.key)))).toEqual([
      "ok",
      "ok",
      "ok",
      "ok",
    ]);
    const lib = { $lib: "posthog-rs", $lib_version: "1.2.3" };
    const added = { $session_id: "s", $process_person_profile: false, ...lib };
    const stored = await gateway.events(mine);
    expect(stored.map(({ properties }) => properties)).toEqual([
      { ...lib, ...own },
      added,
      added,
      lib,
    ]);
    expect(stored.map((event) => event["person_profile"])).toEqual([true, false, false, true]);
  });

  test.each(["posthog", "/1.0", "posthog/", `${"p".repeat(200)}/1`, "caf\u00e9/1", ""])(
    "stores no SDK for the header %j",
    async (sdk) => {
      const mine = await gateway.project();
      const answer = await postV1(gateway, v1Body([v1Event()]), {
        ...v1Headers(mine.key),
        "PostHog-Sdk-Info": sdk,
      });
      expect(outcomes(answer)).toEqual(["ok"]);
      expect((await gateway.events(mine))[0]?.properties).toEqual({});
    },
  );

  test("corrects timestamps except for events that forbid it", async () => {
    const mine = await gateway.project();
    const skewMs = 3_600_000;
    const happened = new Date(Date.now() + skewMs - 60_000).toISOString();
    const batch = [
      v1Event({ timestamp: happened }),
      v1Event({ timestamp: happened, options: { disable_skew_correction: true } }),
    ];
    const sentAt = new Date(Date.now() + skewMs).toISOString();
    const body = v1Body(batch, { sent_at: "1999-01-01T00:00:00Z" });
    await postV1(gateway, body, { ...v1Headers(mine.key), "PostHog-Request-Timestamp": sentAt });
    const [corrected, kept] = await gateway.events(mine);
    expect(
      Math.abs(Date.parse(String(corrected?.["timestamp"])) + skewMs - Date.parse(happened)),
    ).toBeLessThan(10_000);
    expect(corrected).toMatchObject({ sent_at: sentAt, timestamp_sent: happened });
    expect(kept).toMatchObject({ sent_at: sentAt, timestamp: happened });
    expect(kept?.properties["$ignore_sent_at"]).toBe(true);
  });

  test("returns a result for each event, in the order of the batch", async () => {
    const mine = await gateway.project();
    const batch = [
      v1Event(),
      v1Event({ timestamp: "yesterday" }),
      v1Event({ timestamp: undefined }),
      v1Event({ event: " " }),
      v1Event({ event: "$performance_event" }),
      v1Event({ distinct_id: "" }),
      v1Event({ event: "\u{1f600}".repeat(201) }),
      v1Event({ distinct_id: "\u{1f600}".repeat(401) }),
      v1Event({ event: "n".repeat(5_000) }),
      v1Event({ properties: { text: "x".repeat(65_536) } }),
      v1Event({ properties: [1] }),
      v1Event({ event: "$create_alias" }),
      v1Event({ properties: [], session_id: "s" }),
      v1Event({ event: "$identify", timestamp: "x" }),
      ...[
        1,
        [],
        { cookieless_mode: "x" },
        { process_person_profile: {} },
        { product_tour_id: 1.5 },
      ].map((options) => v1Event({ options })),
      v1Event({ session_id: 1 }),
      v1Event({ window_id: "w".repeat(5_000) }),
      v1Event({
        event: "\u{1f600}".repeat(200),
        distinct_id: "\u{1f600}".repeat(400),
        uuid: randomUUID().toUpperCase(),
      }),
    ];
    const answer = await postV1(gateway, v1Body(batch), v1Headers(mine.key));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("retry-after")).toBeNull();
    expect(Object.keys(answer.json.results ?? {})).toEqual(
      batch.map(({ uuid }) => uuid.toLowerCase()),
    );
    expect(outcomes(answer)).toEqual([
      "ok",
      "warning: invalid_timestamp",
      "warning: missing_timestamp",
      "drop: no_event",
      "drop: performance_event",
      "drop: no_distinct_id",
      "drop: event_name_too_long",
      "drop: distinct_id_too_long",
      "drop: event_name_too_long",
      "drop: event_too_large",
      "drop: invalid_properties",
      "warning: missing_alias",
      "ok",
      "warning: missing_set, invalid_timestamp",
      "warning: invalid_options",
      "ok",
      ...Array<string>(5).fill("warning: invalid_options"),
      "ok",
    ]);
    const stored = await gateway.events(mine);
    expect(stored.map(({ uuid }) => uuid)).toEqual(
      batch.filter((_, index) => index < 3 || index > 10).map(({ uuid }) => uuid.toLowerCase()),
    );
    expect(stored.at(8)).toMatchObject({ replaced: { options: { cookieless_mode: "x" } } });
    expect(stored.at(11)).toMatchObject({ replaced: { session_id: 1 } });
  });

  test("answers 200 to a batch even if all events are dropped", async () => {
    const mine = await gateway.project();
    const answer = await postV1(
      gateway,
      v1Body([v1Event({ event: "" }), v1Event({ properties: 1 })]),
      v1Headers(mine.key),
    );
    expect(answer.status).toBe(200);
    expect(outcomes(answer)).toEqual(["drop: no_event", "drop: invalid_properties"]);
    expect(await gateway.events(mine)).toEqual([]);
  });

  const codings: [string, (text: string) => Uint8Array<ArrayBuffer>][] = [
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
    ["identity", (text) => Buffer.from(text)],
  ];

  test.each(codings)("accepts a body in %s", async (coding, pack) => {
    const mine = await gateway.project();
    const batch = Array.from({ length: 2_000 }, (_, index) => v1Event({ event: `e${index}` }));
    const answer = await postV1(gateway, pack(v1Body(batch)), {
      ...v1Headers(mine.key),
      "Content-Encoding": coding,
    });
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.json.results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
    expect(new Set(outcomes(answer))).toEqual(new Set(["ok"]));
    expect((await gateway.events(mine)).map(({ event }) => event)).toEqual(
      batch.map((event) => event["event"]),
    );
  });

  test("stores history in the historical stream", async () => {
    const mine = await gateway.project();
    const answer = await postV1(
      gateway,
      v1Body([v1Event()], { historical_migration: true }),
      v1Headers(mine.key),
    );
    expect(outcomes(answer)).toEqual(["ok"]);
    expect(await gateway.events(mine, "historical")).toMatchObject([
      { event: "e", historical: true },
    ]);
  });

  test("reads the API key from the header, not from the body", async () => {
    const mine = await gateway.project();
    const { Authorization: _, ...others } = v1Headers(mine.key);
    const inHeader = { ...others, "PostHog-Api-Token": mine.key };
    const body = () =>
      v1Body([v1Event({ api_key: "phc_nobody" })], { api_key: "phc_nobody", token: "phc_nobody" });
    expect((await postV1(gateway, body(), inHeader)).status).toBe(200);
    expect(
      (await postV1(gateway, body(), { ...inHeader, Authorization: "Basic eA==" })).status,
    ).toBe(200);
    expect(
      (await postV1(gateway, body(), { ...others, Authorization: `bEARER   ${mine.key}` })).status,
    ).toBe(200);
    expect(await gateway.events(mine)).toHaveLength(3);
  });

  test("accepts requests whose only v1 header is the key header", async () => {
    const answer = await postV1(gateway, v1Body([v1Event()]), {
      Authorization: `Bearer ${project.key}`,
    });
    expect(outcomes(answer)).toEqual(["ok"]);
  });

  test("suggests fixes for the first dropped events", async () => {
    const { event: _, ...nameless } = v1Event();
    const { distinct_id: __, ...nobodys } = v1Event();
    const batch = [
      v1Event(),
      { ...nameless, evnt: "e" },
      { ...nobodys, distinctId: "u" },
      v1Event({ event: "$create_alias", properties: { Alias: "a" } }),
      { ...nameless, uuid: v1Event().uuid, colour: "blue" },
      ...Array.from({ length: 100 }, () => ({ ...nameless, uuid: v1Event().uuid, evnt: "e" })),
    ];
    const answer = await postV1(gateway, v1Body(batch), v1Headers(project.key));
    const results = Object.values(answer.json.results ?? {});
    expect(results.slice(0, 5)).toEqual([
      { result: "ok" },
      { result: "drop", details: "no_event", hint: 'you sent "evnt": write "event"' },
      {
        result: "drop",
        details: "no_distinct_id",
        hint: 'you sent "distinctId": write "distinct_id"',
      },
      { result: "warning", details: "missing_alias" },
      { result: "drop", details: "no_event" },
    ]);
    expect(results).toHaveLength(105);
    expect(results.filter(({ hint }) => hint !== undefined).length).toBeLessThan(25);
  });
});
