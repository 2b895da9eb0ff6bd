import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { postV1, v1Body, v1Event, v1Headers, v1Path } from "../../kit/v1-requests.ts";

const gateway = await gatewayForFile({
  env: { PENSTOCK_BODY_BYTES_MAX: "1048576", PENSTOCK_REQUEST_EVENTS_MAX: "3000" },
});
const project = await gateway.project();

const fine = () => v1Body([v1Event()]);
const good = v1Event();
interface Refused {
  readonly body?: () => string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}
const refusals: [status: number, error: string, title: string, request: Refused][] = [
  [401, "missing_api_key", "no key", { headers: { Authorization: "" } }],
  [401, "missing_api_key", "a different scheme", { headers: { Authorization: "Basic eDp5" } }],
  [401, "missing_api_key", "no key after the scheme", { headers: { Authorization: "Bearer " } }],
  [401, "unknown_api_key", "an unknown key", { headers: { Authorization: "Bearer phc_nobody" } }],
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
  [400, "invalid_header", "an invalid request id", { headers: { "PostHog-Request-Id": "1" } }],
  [400, "invalid_header", "attempt 0", { headers: { "PostHog-Attempt": "0" } }],
  [
    400,
    "invalid_header",
    "an attempt that is not a number",
    { headers: { "PostHog-Attempt": "first" } },
  ],
  [
    400,
    "invalid_header",
    "an invalid timestamp",
    { headers: { "PostHog-Request-Timestamp": "now" } },
  ],
  [
    415,
    "unsupported_encoding",
    "a body in an unknown coding",
    { headers: { "Content-Encoding": "lz4" }, body: () => "\x04\x22\x4d\x18" },
  ],
  [
    415,
    "unsupported_encoding",
    "a name that is not an HTTP coding",
    { headers: { "Content-Encoding": "lz64" } },
  ],
  [415, "unsupported_encoding", "two codings", { headers: { "Content-Encoding": "gzip, br" } }],
  [400, "empty_body", "no body", { body: () => "" }],
  [400, "empty_body", "white space", { body: () => " \n" }],
  [400, "invalid_json", "half a body", { body: () => fine().slice(0, -5) }],
  [400, "invalid_json", "a form", { body: () => `data=${encodeURIComponent(fine())}` }],
  [400, "invalid_json", "base64", { body: () => Buffer.from(fine()).toString("base64") }],
  [
    400,
    "invalid_encoding",
    "invalid gzip",
    { headers: { "Content-Encoding": "gzip" }, body: fine },
  ],
  [
    400,
    "invalid_encoding",
    "truncated gzip",
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
  [
    400,
    "invalid_payload",
    "no created_at",
    { body: () => v1Body([good], { created_at: undefined }) },
  ],
  [
    400,
    "invalid_payload",
    "a numeric created_at",
    { body: () => v1Body([good], { created_at: 1_700_000_000 }) },
  ],
  [
    400,
    "invalid_payload",
    "a historical_migration that is text",
    {
      body: () => v1Body([good], { historical_migration: "true" }),
    },
  ],
  [400, "invalid_payload", "no uuid", { body: () => v1Body([good, { ...good, uuid: undefined }]) }],
  [
    400,
    "invalid_payload",
    "an invalid uuid",
    { body: () => v1Body([good, { ...good, uuid: "x" }]) },
  ],
  [
    400,
    "invalid_payload",
    "a uuid with one invalid character",
    {
      body: () => v1Body([good, { ...good, uuid: `${good.uuid.slice(0, -1)}g` }]),
    },
  ],
  [
    400,
    "invalid_payload",
    "a uuid that is a number",
    { body: () => v1Body([good, { ...good, uuid: 1 }]) },
  ],
  [400, "invalid_payload", "an item that is not an object", { body: () => v1Body([good, 1]) }],
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
      body: () =>
        v1Body([good, { ...good, uuid: "@" }]).replace("@", good.uuid.replace(/[0-9a-f]/, escaped)),
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

describe("the v1 protocol", () => {
  describe("rejects a whole request with", () => {
    test.each(refusals)("%i %s: %s", async (status, error, _, { body = fine, headers = {} }) => {
      const before = (await gateway.events(project)).length;
      const answer = await postV1(gateway, body(), { ...v1Headers(project.key), ...headers });
      expect(answer.json).toEqual({
        error,
        error_description: expect.stringMatching(/\w{3}/) as string,
      });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("content-type")).toBe("application/json");
      expect(answer.text).not.toContain(project.key);
      expect(await gateway.events(project)).toHaveLength(before);
    });
  });

  test("names the index of the wrong event", async () => {
    const say = async (batch: unknown[]) =>
      (await postV1(gateway, v1Body(batch), v1Headers(project.key))).json.error_description;
    expect(await say([good, {}])).toBe("Each event must have a uuid, but batch[1] has none");
    expect(await say([good, v1Event(), good])).toBe("batch[2] has the same uuid as batch[0]");
  });

  test("suggests the name batch for a typo", async () => {
    const say = async (body: object, headers: Record<string, string>) =>
      (await postV1(gateway, JSON.stringify(body), headers)).json.error_description;
    const created_at = new Date().toISOString();
    const slip = await say({ created_at, events: [good] }, v1Headers(project.key));
    expect(slip).toBe('batch must be an array of events; you sent "events": write "batch"');
    const nobodys = { ...v1Headers(project.key), Authorization: "" };
    expect(await say({ created_at, apiKey: project.key, batch: [good] }, nobodys)).not.toContain(
      "you sent",
    );
  });

  test("rejects all methods except POST and a preflight", async () => {
    for (const path of [v1Path, `${v1Path}/`]) {
      for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
        const response = await fetch(gateway.url + path, { method });
        expect(response.status).toBe(405);
        expect(response.headers.get("allow")).toBe("POST, OPTIONS");
        expect(await response.json()).toMatchObject({ error: "method_not_allowed" });
      }
      const asked =
        "authorization,posthog-request-id,posthog-attempt,posthog-request-timestamp,posthog-sdk-info";
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
    expect(await gateway.metrics()).toMatch(
      /^penstock_requests_total\{route="v1",status="200"\} [1-9]/m,
    );
  });

  test("answers 429 for a project over its quota", async () => {
    const mine = await gateway.project();
    await gateway.limit(mine, { eventsPerSecond: 1, burstSeconds: 1 });
    const send = () =>
      postV1(gateway, v1Body(Array.from({ length: 100 }, () => v1Event())), v1Headers(mine.key));
    let answer = await send();
    for (let sent = 0; answer.status === 200 && sent < 50; sent++) answer = await send();
    expect(answer).toMatchObject({ status: 429, json: { error: "rate_limited" } });
  });
});
