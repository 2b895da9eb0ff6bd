// The newer protocol (v1): each event hears for itself what became of it, in the order of the batch, and what is not stored is to be sent
// again, or never. What is wrong with a request as a whole is said before anything of it is stored.

import { randomUUID } from "node:crypto";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestGateway, type TestGateway, type TestProject } from "../kit/gateway.ts";
import { outcomes, postV1, v1Body, v1Event, v1Headers, v1Path } from "./v1-kit.ts";

let gateway: TestGateway;
let project: TestProject;

beforeAll(async () => {
  gateway = await startTestGateway({
    nats: { maxPayload: 65_536 },
    env: { PENSTOCK_BODY_BYTES_MAX: "1048576", PENSTOCK_REQUEST_EVENTS_MAX: "3000" },
  });
  project = await gateway.project();
});

afterAll(async () => {
  await gateway.stop();
});

test("an event is stored as what it is, with session, window, options and SDK among its properties", async () => {
  const mine = await gateway.project();
  const event = v1Event({
    timestamp: "2026-01-31T12:00:00.5+02:00",
    session_id: "s\u00e9ss",
    window_id: "w",
    options: { cookieless_mode: true, process_person_profile: "false", product_tour_id: 7, unknown: [1] },
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

test("what properties say already stays, and without properties there are some", async () => {
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
  expect(outcomes(await postV1(gateway, spaced, v1Headers(mine.key)))).toEqual(["ok", "ok", "ok", "ok"]);
  const lib = { $lib: "posthog-rs", $lib_version: "1.2.3" };
  const added = { $session_id: "s", $process_person_profile: false, ...lib };
  const stored = await gateway.events(mine);
  expect(stored.map(({ properties }) => properties)).toEqual([{ ...lib, ...own }, added, added, lib]);
  expect(stored.map((event) => event["person_profile"])).toEqual([true, false, false, true]);
});

test.each(["posthog", "/1.0", "posthog/", `${"p".repeat(200)}/1`, "caf\u00e9/1", ""])(
  "an SDK that calls itself %j is not named",
  async (sdk) => {
    const mine = await gateway.project();
    const answer = await postV1(gateway, v1Body([v1Event()]), { ...v1Headers(mine.key), "PostHog-Sdk-Info": sdk });
    expect(outcomes(answer)).toEqual(["ok"]);
    expect((await gateway.events(mine))[0]?.properties).toEqual({});
  },
);

test("the request's own clock corrects timestamps, but for events that say it should not", async () => {
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
  expect(Math.abs(Date.parse(String(corrected?.["timestamp"])) + skewMs - Date.parse(happened))).toBeLessThan(10_000);
  expect(corrected).toMatchObject({ sent_at: sentAt, timestamp_sent: happened });
  expect(kept).toMatchObject({ sent_at: sentAt, timestamp: happened });
  expect(kept?.properties["$ignore_sent_at"]).toBe(true);
});

test("each event has its own result, in the order of the batch", async () => {
  const mine = await gateway.project();
  const batch = [
    v1Event(),
    v1Event({ timestamp: "yesterday" }),
    v1Event({ timestamp: undefined }),
    v1Event({ event: " " }),
    v1Event({ event: "$performance_event" }),
    v1Event({ distinct_id: "" }),
    v1Event({ event: "\u{1f600}".repeat(201) }),
    v1Event({ distinct_id: "\u{1f600}".repeat(201) }),
    v1Event({ event: "n".repeat(5_000) }),
    v1Event({ properties: { text: "x".repeat(65_536) } }),
    v1Event({ properties: [] }),
    v1Event({ event: "$create_alias" }),
    v1Event({ event: "$identify", timestamp: "x" }),
    ...[1, [], { cookieless_mode: "x" }, { process_person_profile: {} }, { product_tour_id: 1.5 }].map((options) =>
      v1Event({ options }),
    ),
    v1Event({ session_id: 1 }),
    v1Event({ window_id: "w".repeat(5_000) }),
    v1Event({ event: "\u{1f600}".repeat(200), distinct_id: "\u{1f600}".repeat(200), uuid: randomUUID().toUpperCase() }),
  ];
  const answer = await postV1(gateway, v1Body(batch), v1Headers(mine.key));
  expect(answer.status).toBe(200);
  expect(answer.headers.get("retry-after")).toBeNull();
  expect(Object.keys(answer.json.results ?? {})).toEqual(batch.map(({ uuid }) => uuid.toLowerCase()));
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
    "drop: missing_alias",
    "warning: missing_set, invalid_timestamp",
    ...Array<string>(7).fill("drop: invalid_options"),
    "ok",
  ]);
  const stored = await gateway.events(mine);
  expect(stored.map(({ uuid }) => uuid)).toEqual([0, 1, 2, 12, 20].map((index) => batch[index]?.uuid.toLowerCase()));
});

test("a batch of which everything is dropped is a 200", async () => {
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

test.each(codings)("a body in %s is taken", async (coding, pack) => {
  const mine = await gateway.project();
  const batch = Array.from({ length: 2_000 }, (_, index) => v1Event({ event: `e${index}` }));
  const answer = await postV1(gateway, pack(v1Body(batch)), { ...v1Headers(mine.key), "Content-Encoding": coding });
  expect(answer.status).toBe(200);
  expect(Object.keys(answer.json.results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
  expect(new Set(outcomes(answer))).toEqual(new Set(["ok"]));
  expect((await gateway.events(mine)).map(({ event }) => event)).toEqual(batch.map((event) => event["event"]));
});

test("history goes on its lane", async () => {
  const mine = await gateway.project();
  const answer = await postV1(gateway, v1Body([v1Event()], { historical_migration: true }), v1Headers(mine.key));
  expect(outcomes(answer)).toEqual(["ok"]);
  expect(await gateway.events(mine, "historical")).toMatchObject([{ event: "e", historical: true }]);
});

test("the key may come in a header of its own, and in the body it means nothing", async () => {
  const mine = await gateway.project();
  const { Authorization: _, ...others } = v1Headers(mine.key);
  const inHeader = { ...others, "PostHog-Api-Token": mine.key };
  const body = () => v1Body([v1Event({ api_key: "phc_nobody" })], { api_key: "phc_nobody", token: "phc_nobody" });
  expect((await postV1(gateway, body(), inHeader)).status).toBe(200);
  expect((await postV1(gateway, body(), { ...inHeader, Authorization: "Basic eA==" })).status).toBe(200);
  expect((await postV1(gateway, body(), { ...others, Authorization: `bEARER   ${mine.key}` })).status).toBe(200);
  expect(await gateway.events(mine)).toHaveLength(3);
});

const fine = () => v1Body([v1Event()]);
const good = v1Event();
interface Refused {
  readonly body?: () => string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}
const refusals: [status: number, error: string, title: string, request: Refused][] = [
  [401, "missing_api_key", "no key", { headers: { Authorization: "" } }],
  [401, "missing_api_key", "another scheme", { headers: { Authorization: "Basic eDp5" } }],
  [401, "missing_api_key", "no key behind the scheme", { headers: { Authorization: "Bearer " } }],
  [401, "unknown_api_key", "a key of nobody", { headers: { Authorization: "Bearer phc_nobody" } }],
  [401, "unknown_api_key", "a personal key", { headers: { Authorization: "Bearer phx_personal" } }],
  [
    401,
    "missing_api_key",
    "a key in the body",
    {
      headers: { Authorization: "" },
      body: () => v1Body([v1Event()], { api_key: project.key }),
    },
  ],
  [400, "invalid_header", "a request id that is none", { headers: { "PostHog-Request-Id": "1" } }],
  [400, "invalid_header", "attempt 0", { headers: { "PostHog-Attempt": "0" } }],
  [400, "invalid_header", "an attempt that is no number", { headers: { "PostHog-Attempt": "first" } }],
  [400, "invalid_header", "a timestamp that is none", { headers: { "PostHog-Request-Timestamp": "now" } }],
  [415, "unsupported_encoding", "an unknown coding", { headers: { "Content-Encoding": "lz4" } }],
  [415, "unsupported_encoding", "what is no coding of HTTP", { headers: { "Content-Encoding": "lz64" } }],
  [415, "unsupported_encoding", "two codings", { headers: { "Content-Encoding": "gzip, br" } }],
  [400, "empty_body", "no body", { body: () => "" }],
  [400, "empty_body", "white space", { body: () => " \n" }],
  [400, "invalid_json", "half a body", { body: () => fine().slice(0, -5) }],
  [400, "invalid_json", "a form", { body: () => `data=${encodeURIComponent(fine())}` }],
  [400, "invalid_json", "base64", { body: () => Buffer.from(fine()).toString("base64") }],
  [400, "invalid_encoding", "gzip that is none", { headers: { "Content-Encoding": "gzip" }, body: fine }],
  [
    400,
    "invalid_encoding",
    "half a gzip",
    {
      headers: { "Content-Encoding": "gzip" },
      body: () => gzipSync(fine()).subarray(0, -20),
    },
  ],
  [
    400,
    "invalid_encoding",
    "gzip of gzip",
    {
      headers: { "Content-Encoding": "gzip" },
      body: () => gzipSync(gzipSync(fine())),
    },
  ],
  [413, "body_too_large", "too many bytes", { body: () => " ".repeat(1_048_577) }],
  [413, "too_many_events", "too many events", { body: () => v1Body(Array(3_001).fill({})) }],
  [400, "invalid_payload", "an array", { body: () => JSON.stringify([good]) }],
  [400, "invalid_payload", "one event", { body: () => JSON.stringify(good) }],
  [400, "invalid_payload", "null", { body: () => "null" }],
  [400, "invalid_payload", "no batch", { body: () => '{"created_at":"2026-01-01T00:00:00Z"}' }],
  [400, "invalid_payload", "an empty batch", { body: () => v1Body([]) }],
  [400, "invalid_payload", "batch an object", { body: () => v1Body([], { batch: {} }) }],
  [400, "invalid_payload", "no created_at", { body: () => v1Body([good], { created_at: undefined }) }],
  [400, "invalid_payload", "created_at a number", { body: () => v1Body([good], { created_at: 1_700_000_000 }) }],
  [
    400,
    "invalid_payload",
    "historical_migration a text",
    {
      body: () => v1Body([good], { historical_migration: "true" }),
    },
  ],
  [400, "invalid_payload", "no uuid", { body: () => v1Body([good, { ...good, uuid: undefined }]) }],
  [400, "invalid_payload", "a uuid that is none", { body: () => v1Body([good, { ...good, uuid: "x" }]) }],
  [
    400,
    "invalid_payload",
    "a uuid that is almost one",
    {
      body: () => v1Body([good, { ...good, uuid: `${good.uuid.slice(0, -1)}g` }]),
    },
  ],
  [400, "invalid_payload", "a uuid that is a number", { body: () => v1Body([good, { ...good, uuid: 1 }]) }],
  [400, "invalid_payload", "an item that is no object", { body: () => v1Body([good, 1]) }],
  [400, "invalid_payload", "a uuid twice", { body: () => v1Body([good, v1Event(), good]) }],
  [
    400,
    "invalid_payload",
    "a uuid twice, in capitals",
    {
      body: () => v1Body([good, { ...good, uuid: good.uuid.toUpperCase() }]),
    },
  ],
  [
    400,
    "invalid_payload",
    "a uuid twice, with escapes",
    {
      body: () => v1Body([good, { ...good, uuid: "@" }]).replace("@", good.uuid.replace(/[0-9a-f]/, escaped)),
    },
  ],
  [
    400,
    "invalid_payload",
    "a uuid twice, far apart",
    {
      body: () => v1Body([good, ...Array.from({ length: 2_500 }, () => v1Event()), good]),
    },
  ],
];

function escaped(digit: string): string {
  return `\\u${digit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

describe("a request is refused as a whole, with nothing stored", () => {
  test.each(refusals)("%i %s: %s", async (status, error, _, { body = fine, headers = {} }) => {
    const before = (await gateway.events(project)).length;
    const answer = await postV1(gateway, body(), { ...v1Headers(project.key), ...headers });
    expect(answer.json).toEqual({ error, error_description: expect.stringMatching(/\w{3}/) as string });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.text).not.toContain(project.key);
    expect(await gateway.events(project)).toHaveLength(before);
  });
});

test("what is wrong is told with its place", async () => {
  const say = async (batch: unknown[]) =>
    (await postV1(gateway, v1Body(batch), v1Headers(project.key))).json.error_description;
  expect(await say([good, {}])).toBe("Each event must have a uuid, and batch[1] has none");
  expect(await say([good, v1Event(), good])).toBe("batch[2] has the same uuid as batch[0]");
});

test("headers beside the key may be absent", async () => {
  const answer = await postV1(gateway, v1Body([v1Event()]), { Authorization: `Bearer ${project.key}` });
  expect(outcomes(answer)).toEqual(["ok"]);
});

test("other methods are refused, preflights are not, and a slash changes nothing", async () => {
  for (const path of [v1Path, `${v1Path}/`]) {
    for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
      const response = await fetch(gateway.url + path, { method });
      expect(response.status).toBe(405);
      expect(response.headers.get("allow")).toBe("POST, OPTIONS");
      expect(await response.json()).toMatchObject({ error: "method_not_allowed" });
    }
    const asked = "authorization,posthog-request-id,posthog-attempt,posthog-request-timestamp,posthog-sdk-info";
    const preflight = await fetch(gateway.url + path, {
      method: "OPTIONS",
      headers: {
        Origin: "https://shop.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": asked,
      },
    });
    expect(preflight.status).toBe(200);
    expect(preflight.headers.get("access-control-allow-headers")).toBe(asked);
    const posted = await fetch(gateway.url + path, {
      method: "POST",
      body: v1Body([v1Event()]),
      headers: { ...v1Headers(project.key), Origin: "https://shop.example" },
    });
    expect(posted.status).toBe(200);
    expect(posted.headers.get("access-control-allow-origin")).toBe("https://shop.example");
    await posted.text();
  }
  expect(await gateway.metrics()).toMatch(/^penstock_requests_total\{route="v1",status="200"\} [1-9]/m);
});

test("a key that is switched off, and one over its limits, are told so", async () => {
  const mine = await gateway.project();
  await gateway.limit(mine, { eventsPerSecond: 1, burstSeconds: 1 });
  const send = () => postV1(gateway, v1Body(Array.from({ length: 100 }, () => v1Event())), v1Headers(mine.key));
  let answer = await send();
  for (let sent = 0; answer.status === 200 && sent < 50; sent++) answer = await send();
  expect(answer).toMatchObject({ status: 429, json: { error: "rate_limited" } });
});
