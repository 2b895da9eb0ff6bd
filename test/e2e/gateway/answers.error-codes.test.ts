// Rows that need a failing store list their test files, so that no row is untested.

import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type ErrorCode, errorTable } from "../../../src/platform/base/errors.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { Answer } from "../../kit/gateway.ts";

const gateway = await gatewayForFile({
  nats: { maxPayload: 65_536 },
  env: {
    PENSTOCK_BODY_BYTES_MAX: "1048576",
    PENSTOCK_INFLATED_BYTES_MAX: "2097152",
    PENSTOCK_REQUEST_EVENTS_MAX: "70000",
  },
});
const project = await gateway.project();

type Request = () => Promise<Answer>;

function event(fields: Record<string, unknown>): Request {
  return () => gateway.post("/capture/", { api_key: project.key, distinct_id: "u", ...fields });
}

async function get(path: string): Promise<Answer> {
  const response = await fetch(gateway.url + path);
  return {
    status: response.status,
    headers: response.headers,
    json: (await response.json()) as Answer["json"],
  };
}

function batchText(item: string, count: number): string {
  return `{"api_key":"${project.key}","batch":[${Array(count).fill(item).join(",")}]}`;
}

const requests: Partial<Record<ErrorCode, [string, Request][]>> = {
  empty_body: [
    ["no body", () => gateway.post("/capture/", "")],
    ["a GET without data", () => get("/e/")],
    ["white space", () => gateway.post("/batch/", " \r\n\t")],
    ["gzip of an empty text", () => gateway.post("/batch/", gzipSync(""))],
  ],
  invalid_encoding: [
    ["not gzip", () => gateway.post("/batch/", "{}", { "content-encoding": "gzip" })],
    [
      "truncated gzip",
      () =>
        gateway.post(
          "/batch/",
          gzipSync(JSON.stringify({ api_key: project.key, batch: [] })).subarray(0, 30),
        ),
    ],
    ["not UTF-8", () => gateway.post("/batch/", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d))],
  ],
  invalid_json: [
    ["an unknown literal", () => gateway.post("/batch/", '{"api_key":nul}')],
    ["a truncated body", () => gateway.post("/batch/", '{"api_key":"x"')],
    [
      "invalid deep inside properties",
      () =>
        gateway.post(
          "/capture/",
          `{"api_key":"${project.key}","event":"e","distinct_id":"u","properties":{"a":[1,{"b":tru}]}}`,
        ),
    ],
  ],
  invalid_payload: [
    ["an array", () => gateway.post("/batch/", "[]")],
    ["a string", () => gateway.post("/batch/", '"x"')],
    [
      "a batch that is an object",
      () => gateway.post("/batch/", { api_key: project.key, batch: {} }),
    ],
    ["a batch that is null", () => gateway.post("/batch/", { api_key: project.key, batch: null })],
    [
      "a historical_migration that is a string",
      () =>
        gateway.post("/batch/", { api_key: project.key, batch: [], historical_migration: "true" }),
    ],
  ],
  invalid_properties: [["properties a number", event({ event: "e", properties: 1 })]],
  too_deep: [
    [
      "101 levels",
      event({ event: "e", properties: JSON.parse(`${'{"a":'.repeat(100)}1${"}".repeat(100)}`) }),
    ],
  ],
  number_too_long: [
    [
      "401 digits",
      () =>
        gateway.post(
          "/capture/",
          `{"api_key":"${project.key}","event":"e","distinct_id":"u","properties":{"n":${"9".repeat(401)}}}`,
        ),
    ],
  ],
  missing_api_key: [
    ["no key", () => gateway.post("/capture/", { event: "e", distinct_id: "u" })],
    [
      "a key that is null",
      () => gateway.post("/capture/", { api_key: null, event: "e", distinct_id: "u" }),
    ],
    [
      "a key that is a number",
      () => gateway.post("/batch/", { api_key: 5, token: project.key, batch: [] }),
    ],
    ["a blank key", () => gateway.post("/batch/", { api_key: "  ", batch: [] })],
  ],
  unknown_api_key: [
    [
      "a key of no project",
      () => gateway.post("/capture/", { api_key: "phc_nobody", event: "e", distinct_id: "u" }),
    ],
    [
      "a known key with an extra character",
      () => gateway.post("/capture/", { api_key: `${project.key}x`, event: "e", distinct_id: "u" }),
    ],
    [
      "a known key padded to 300 characters",
      () =>
        gateway.post("/capture/", {
          api_key: project.key.padEnd(300, "x"),
          event: "e",
          distinct_id: "u",
        }),
    ],
    [
      "the name of a prototype",
      () => gateway.post("/capture/", { api_key: "__proto__", event: "e", distinct_id: "u" }),
    ],
    [
      "an unknown key with an invalid batch",
      () => gateway.post("/batch/", { api_key: "phc_nobody", batch: {} }),
    ],
  ],
  not_found: [
    ["another path", () => gateway.post("/events", {})],
    ["below a path", () => get("/batch/x")],
  ],
  method_not_allowed: [
    ["DELETE", async () => toAnswer(await fetch(`${gateway.url}/batch/`, { method: "DELETE" }))],
    [
      "PUT",
      async () => toAnswer(await fetch(`${gateway.url}/capture`, { method: "PUT", body: "{}" })),
    ],
  ],
  body_too_large: [
    ["a body above the limit", () => gateway.post("/batch/", " ".repeat(1_048_577))],
  ],
  inflated_too_large: [
    [
      "a body above the limit after decompression",
      () => gateway.post("/batch/", gzipSync(" ".repeat(2_097_153))),
    ],
  ],
  too_many_events: [
    ["dropped events", () => gateway.post("/batch/", batchText("{}", 70_001))],
    ["compressed events", () => gateway.post("/batch/", gzipSync(batchText("{}", 70_001)))],
  ],
  event_too_large: [
    ["an event above max_payload", event({ event: "e", properties: { text: "x".repeat(65_536) } })],
  ],
  unsupported_encoding: [
    [
      "the coding compress",
      () => gateway.post("/batch/", "\x1f\x9d\x90", { "content-encoding": "compress" }),
    ],
  ],
};

async function toAnswer(response: Response): Promise<Answer> {
  return {
    status: response.status,
    headers: response.headers,
    json: (await response.json()) as Answer["json"],
  };
}

const elsewhere: Partial<Record<ErrorCode, string>> = {
  invalid_framing: "test/gateway/http",
  invalid_header: "the-newer-protocol-answers-for-each-event",
  event_name_too_long: "the-newer-protocol-answers-for-each-event",
  distinct_id_too_long: "the-newer-protocol-answers-for-each-event",
  expands_too_far: "caps.expansion",
  project_disabled: "keys-change-while-it-runs",
  rate_limited: "limits-hold-for-one-project-alone",
  unreadable_event: "one-event-cannot-fail-its-batch",
  overloaded: "test/gateway/http",
  unavailable: "a-lost-store-is-503",
  store_full: "a-full-store-is-503",
  project_full: "a-project-fills-its-share",
  draining: "test/gateway/http",
  upstream_unavailable: "test/gateway/upstream",
  timeout: "a-lost-store-is-503",
};

describe("an error", () => {
  test("has a test for every row of the error table", () => {
    expect([...Object.keys(requests), ...Object.keys(elsewhere)].sort()).toEqual(
      Object.keys(errorTable).sort(),
    );
  });

  describe.each(Object.entries(requests))("%s", (code, rows) => {
    test.each(rows)("is the answer to: %s", async (_title, request) => {
      const row = errorTable[code as ErrorCode];
      const answer = await request();
      expect(answer.json).toMatchObject({ code, status: row.status, title: row.title });
      expect(answer.status).toBe(row.status);
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(answer.headers.get("retry-after")).toBeNull();
      expect(Object.keys(answer.json).sort()).toEqual([
        "code",
        "detail",
        "status",
        "title",
        "type",
      ]);
      expect(answer.json["detail"]).not.toBe("");
      expect(JSON.stringify(answer.json)).not.toContain(project.key);
    });

    test("is counted in the metrics", async () => {
      const counted = async () =>
        Number(
          new RegExp(`^penstock_problems_total{code="${code}"} (\\d+)$`, "m").exec(
            await gateway.metrics(),
          )?.[1],
        );
      const before = await counted();
      for (const [, request] of rows) await request();
      expect(await counted()).toBe(before + rows.length);
    });
  });

  test("contains the byte offset if it is invalid_json", async () => {
    for (const [body, offset] of [
      ['{"é":tru}', 9],
      ['{"é":[tru]}', 10],
    ]) {
      const answer = await gateway.post("/batch/", body);
      expect(answer.json["detail"]).toMatch(new RegExp(`offset ${offset}\\b`));
    }
  });

  test("contains the allowed methods if it is method_not_allowed", async () => {
    const response = await fetch(`${gateway.url}/batch`, { method: "PUT" });
    expect(response.headers.get("allow")).toBe("GET, POST, OPTIONS");
  });

  test("of a batch with only invalid events has the first event's code", async () => {
    const batch = [
      `{"event":"e","distinct_id":"u","properties":{"n":${"9".repeat(401)}}}`,
      '{"event":"e","distinct_id":"u","properties":[1]}',
    ];
    const answer = await gateway.post(
      "/batch/",
      `{"api_key":"${project.key}","batch":[${batch.join(",")}]}`,
    );
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({
      code: "number_too_long",
      errors_total: 2,
      errors: [
        { index: 0, code: "number_too_long" },
        { index: 1, code: "invalid_properties" },
      ],
    });
  });

  test("of an invalid event does not fail a request with a dropped event", async () => {
    const batch = [{ event: "e", distinct_id: "u", properties: 1 }, { event: "" }];
    const answer = await gateway.post("/batch/", { api_key: project.key, batch });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      accepted: 0,
      dropped: 2,
      errors_total: 1,
      warnings_total: 1,
    });
  });

  test("or a warning is listed for the first 20 events", async () => {
    const wrong = { event: "e", distinct_id: "u", properties: "none" };
    const odd = { event: "e", distinct_id: "u", uuid: "x" };
    const batch = [
      ...Array.from({ length: 30 }, () => wrong),
      ...Array.from({ length: 25 }, () => odd),
    ];
    const answer = await gateway.post("/batch/", { api_key: project.key, batch });
    expect(answer.json).toMatchObject({
      accepted: 25,
      dropped: 30,
      errors_total: 30,
      warnings_total: 25,
    });
    expect(answer.json["errors"]).toHaveLength(20);
    expect(answer.json["warnings"]).toHaveLength(20);
  });

  test("is not returned for an empty batch", async () => {
    const answer = await gateway.post("/batch/", { api_key: project.key, batch: [] });
    expect(answer.json).toEqual({ status: "Ok", accepted: 0, dropped: 0 });
  });

  test("of a large event does not affect other events of its batch", async () => {
    const own = await gateway.project();
    const small = { event: "e", distinct_id: "u" };
    const large = { ...small, properties: { text: "x".repeat(65_536) } };
    const answer = await gateway.post("/batch/", {
      api_key: own.key,
      batch: [small, large, small],
    });
    expect(answer.json).toMatchObject({
      accepted: 2,
      dropped: 1,
      errors: [{ index: 1, code: "event_too_large" }],
    });
    expect(await gateway.events(own)).toHaveLength(2);
  });
});
