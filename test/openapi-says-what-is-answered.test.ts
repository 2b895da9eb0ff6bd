// openapi.yaml against a gateway that runs: every answer has the status, headers, content type and shape the file gives
// for its path and method, and bodies match the schema of what they are, and of nothing else.

import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { errorTable } from "../src/errors.ts";
import { endpoints as allEndpoints } from "../src/http/endpoints.ts";
import { v1Body, v1Event, v1Headers } from "./gateway/v1-kit.ts";
import { startTestGateway, type TestGateway, type TestProject, until } from "./kit/gateway.ts";

/** Those of the newer protocol are asked for themselves. */
const endpoints = allEndpoints.filter(([, route]) => route !== "v1");
const v1Paths = allEndpoints.filter(([, route]) => route === "v1").map(([path]) => path);

interface Described {
  readonly headers?: Record<string, { readonly required?: boolean; readonly schema: object }>;
  readonly content?: Record<string, { readonly schema: object }>;
}
type Operations = Record<string, { readonly responses: Record<string, Described> }>;
interface OpenApi {
  readonly paths: Record<string, Operations>;
  readonly components: { readonly schemas: Record<string, Record<string, unknown>> };
}

// YAML 1.1 merges and tags are not used; an alias is the same object as its anchor.
const api = parse(readFileSync("openapi.yaml", "utf8")) as OpenApi;
const { schemas } = api.components;
// What answers may hold is left open to clients, and held to the letter here.
for (const name of ["Stored", "Problem", "Note", "V1Results", "V1Problem"])
  schemas[name] = { ...schemas[name], additionalProperties: false };
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(api, "api");

function faultsOf(schema: object, value: unknown): unknown {
  // References in the file are to the file itself.
  const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object;
  return ajv.validate(whole, value) ? [] : ajv.errors;
}

function isA(name: string, value: unknown): boolean {
  return ajv.validate({ $ref: `api#/components/schemas/${name}` }, value);
}

let gateway: TestGateway;
let project: TestProject;

beforeAll(async () => {
  gateway = await startTestGateway({ nats: { maxPayload: 65_536 }, env: { PENSTOCK_BODY_BYTES_MAX: "1048576" } });
  project = await gateway.project();
});

afterAll(async () => {
  await gateway.stop();
});

/** Sends it, holds the answer against the file, and gives its status. */
async function answered(path: string, request: RequestInit): Promise<number> {
  const response = await fetch(gateway.url + path, request);
  const text = await response.text();
  const method = (request.method ?? "GET").toLowerCase();
  const described = (api.paths[path.split("?")[0]!] ?? api.paths["/{other}"])?.[method]?.responses[response.status];
  const what = `${method} ${path}: ${response.status} ${text}`;
  if (described === undefined) throw new Error(`${what}: is not in openapi.yaml`);
  for (const [name, { required, schema }] of Object.entries(described.headers ?? {})) {
    const value = response.headers.get(name);
    if (value === null) expect(required, `${what}: ${name}`).not.toBe(true);
    else expect(faultsOf(schema, /^\d+$/.test(value) && "type" in schema ? Number(value) : value), what).toEqual([]);
  }
  if (described.content === undefined) {
    expect(text, what).toBe("");
  } else {
    const content = described.content[response.headers.get("content-type") ?? ""];
    expect(faultsOf(content?.schema ?? { not: {} }, JSON.parse(text)), what).toEqual([]);
  }
  return response.status;
}

const single = { event: "e", distinct_id: "d" };
const posts: [string, number, () => RequestInit][] = [
  ["a single event", 200, () => ({ body: JSON.stringify({ api_key: project.key, ...single }) })],
  ["a batch", 200, () => ({ body: JSON.stringify({ token: project.key, batch: [single, single] }) })],
  ["warnings", 200, () => ({ body: JSON.stringify({ api_key: project.key, ...single, timestamp: "x", uuid: "x" }) })],
  ["errors in part", 200, () => ({ body: many([single, { ...single, event: "$create_alias" }]) })],
  ["more errors than are named", 200, () => ({ body: many([single, ...Array(30).fill({ ...single, $set: 1 })]) })],
  ["errors in all", 400, () => ({ body: many([{ ...single, $set: 1 }]) })],
  ["no JSON", 400, () => ({ body: "{" })],
  ["no body", 400, () => ({ body: "" })],
  ["an unknown key", 401, () => ({ body: JSON.stringify({ api_key: "phc_nobody", ...single }) })],
  ["no key", 401, () => ({ body: JSON.stringify(single) })],
  ["a body too large", 413, () => ({ body: " ".repeat(1_048_577) })],
  ["an event too large", 413, () => ({ body: many([{ ...single, properties: { x: "x".repeat(70_000) } }]) })],
  ["an encoding nobody knows", 415, () => ({ body: "{}", headers: { "Content-Encoding": "rot13" } })],
];

function many(batch: readonly object[]): string {
  return JSON.stringify({ api_key: project.key, batch });
}

test.each(posts)("POST: %s", async (_, status, request) => {
  for (const [path] of endpoints) {
    expect(await answered(path, { ...request(), method: "POST" })).toBe(status);
  }
});

test("events in the query, and beacons", async () => {
  const data = encodeURIComponent(JSON.stringify({ api_key: project.key, ...single }));
  for (const [path] of endpoints) {
    expect(await answered(`${path}?data=${data}`, {})).toBe(200);
    expect(await answered(`${path}?beacon=1&data=${data}`, {})).toBe(204);
    expect(await answered(`${path}?beacon=1`, { method: "POST", body: many([single]) })).toBe(204);
    expect(await answered(path, {})).toBe(400);
  }
});

const v1Posts: [string, number, () => RequestInit][] = [
  ["events", 200, () => ({ body: v1Body([v1Event(), v1Event({ timestamp: 1 }), v1Event({ event: "" })]) })],
  ["no uuid", 400, () => ({ body: v1Body([{ ...v1Event(), uuid: undefined }]) })],
  ["no JSON", 400, () => ({ body: "{" })],
  ["no body", 400, () => ({ body: "" })],
  ["a header that is none", 400, () => ({ body: v1Body([v1Event()]), headers: { "PostHog-Attempt": "x" } })],
  ["an unknown key", 401, () => ({ body: v1Body([v1Event()]), headers: { Authorization: "Bearer phc_nobody" } })],
  ["a body too large", 413, () => ({ body: " ".repeat(1_048_577) })],
  ["an encoding nobody knows", 415, () => ({ body: "{}", headers: { "Content-Encoding": "rot13" } })],
];

test.each(v1Posts)("POST of the newer protocol: %s", async (_, status, request) => {
  for (const path of v1Paths) {
    const { body, headers } = request();
    const post = { method: "POST", body: body ?? "", headers: { ...v1Headers(project.key), ...headers } };
    expect(await answered(path, post)).toBe(status);
  }
});

test("preflights and other methods of the newer protocol", async () => {
  const headers = { Origin: "http://shop.example", "Access-Control-Request-Headers": "authorization" };
  for (const path of v1Paths) {
    expect(await answered(path, { method: "OPTIONS", headers })).toBe(200);
    for (const method of ["GET", "PUT", "PATCH", "DELETE", "HEAD"]) expect(await answered(path, { method })).toBe(405);
  }
});

test("preflights, other methods and other paths", async () => {
  const headers = { Origin: "http://shop.example", "Access-Control-Request-Headers": "content-type" };
  for (const [path] of endpoints) {
    expect(await answered(path, { method: "OPTIONS", headers })).toBe(200);
    expect(await answered(path, { method: "OPTIONS" })).toBe(200);
    for (const method of ["PUT", "PATCH", "DELETE", "HEAD"]) expect(await answered(path, { method })).toBe(405);
  }
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
    expect(await answered("/nothing", { method })).toBe(404);
  }
  expect(await answered("/nothing", { method: "OPTIONS", headers })).toBe(200);
});

test("a 429 past a project's limits", async () => {
  await gateway.limit(project, { eventsPerSecond: 0.001, burstSeconds: 1 });
  const request = { method: "POST", body: many(Array.from({ length: 90 }, () => single)) };
  try {
    await until(async () => (await answered("/batch/", request)) === 429);
    const v1 = { body: v1Body(Array.from({ length: 90 }, () => v1Event())), headers: v1Headers(project.key) };
    for (const path of v1Paths) expect(await answered(path, { method: "POST", ...v1 })).toBe(429);
  } finally {
    await gateway.limit(project, undefined);
  }
  await until(async () => (await answered("/capture", request)) === 200);
});

test("a 503 while the store is gone", async () => {
  const own = await startTestGateway({ env: { PENSTOCK_REQUEST_TIMEOUT_MS: "200", PENSTOCK_ACK_TIMEOUT_MS: "100" } });
  const outer = { gateway, project };
  try {
    gateway = own;
    project = await own.project();
    own.nats.freeze();
    expect(await answered("/batch/", { method: "POST", body: many([single]) })).toBe(503);
    const v1 = { method: "POST", body: v1Body([v1Event()]), headers: v1Headers(project.key) };
    for (const path of v1Paths) expect(await answered(path, v1)).toBe(503);
    await own.nats.kill();
    expect(await answered("/batch/", { method: "POST", body: many([single]) })).toBe(503);
  } finally {
    ({ gateway, project } = outer);
    await own.stop();
  }
});

test.each<[string, object, "SingleEvent" | "Batch"]>([
  ["an event", { api_key: "k", ...single }, "SingleEvent"],
  ["an event with all there is", { token: "k", ...single, properties: {}, timestamp: "x", $set: null }, "SingleEvent"],
  ["a batch", { api_key: "k", batch: [single], historical_migration: true, sent_at: "x" }, "Batch"],
  ["an empty batch", { api_key: "k", batch: [] }, "Batch"],
])("%s is one thing and not the other", (_, body, name) => {
  expect([isA("SingleEvent", body), isA("Batch", body)]).toEqual([name === "SingleEvent", name === "Batch"]);
  expect(faultsOf(requestSchema("/batch/"), body)).toEqual([]);
});

test.each<[string, unknown]>([
  ["a batch that is no array", { api_key: "k", batch: "x" }],
  ["an array", [single]],
  ["a key that is no string", { api_key: 1, ...single }],
  ["properties that are no object", { api_key: "k", ...single, properties: [] }],
])("%s is neither", (_, body) => {
  expect(faultsOf(requestSchema("/batch/"), body)).not.toEqual([]);
});

function requestSchema(path: string): object {
  const post = api.paths[path]?.["post"] as { readonly requestBody?: Described } | undefined;
  const schema = post?.requestBody?.content?.["application/json"]?.schema;
  if (schema === undefined) throw new Error(`read openapi.yaml: ${path} has no request body`);
  return schema;
}

test("it knows every error code and no other", () => {
  const { properties } = schemas["Problem"] as { properties: { code: { enum: string[] } } };
  expect([...properties.code.enum].sort()).toEqual(Object.keys(errorTable).sort());
});
