import { request } from "node:http";
import { describe, expect, test } from "vitest";
import type { Page } from "../../../../src/readers/effects/store/port.ts";
import { ada, applied, effectsHttp, readerOf } from "./reader-kit.ts";

const adaText =
  '{"uuid":"0b5f9b62-3a4c-5d1e-8f00-123456789abc","main_distinct_id":"ada",' +
  '"distinct_ids":["anon-1","ada"],"distinct_ids_total":2,' +
  '"properties":{"big":12345678901234567890.10,"plan":"pro"},"known":true,' +
  '"created_at":"2026-01-01T00:00:00.000Z","last_seen_at":"2026-01-02T10:00:00.000Z",' +
  '"version":3,"merged_from":["5d1e9b62-3a4c-5d1e-8f00-123456789abc"]';

const reader = readerOf({
  applied: async () => [applied("PENSTOCK_LIVE_0", 7), applied("PENSTOCK_HISTORICAL_0", 0)],
  personByDistinctId: async (project, id) => (project === "shop" && id === "ada" ? ada : undefined),
  personByUuid: async (_, uuid) => ([ada.uuid, ...ada.mergedFrom].includes(uuid) ? ada : undefined),
  persons: async (_, { after, limit }: Page) =>
    after === "7c1e9b62-3a4c-5d1e-8f00-123456789abc" || limit < 2
      ? { results: [ada], next: undefined }
      : { results: [ada, ada], next: "7c1e9b62-3a4c-5d1e-8f00-123456789abc" },
  links: async (_, uuid) =>
    uuid === ada.uuid
      ? [{ a: "anon-1", b: "ada", kind: "identify", atMs: 0, eventUuid: "018f", outcome: "merged" }]
      : undefined,
  group: async ({ type, key }) =>
    type === "company" && key === "acme"
      ? {
          type,
          key,
          propertiesJson: '{"seats":1.50}',
          createdAtMs: 0,
          updatedAtMs: 1_000,
          version: 2,
        }
      : undefined,
  groupTypes: async () => ["company", "team"],
  usage: async (_, { from, to }) =>
    [
      { day: "2026-01-01", lane: "live", class: "identified", events: 5, duplicates: 1 },
      { day: "2026-01-02", lane: "live", class: "alias", events: 2, duplicates: 0 },
      { day: "2026-01-02", lane: "historical", class: "identified", events: 9, duplicates: 0 },
    ].filter(({ day }) => from <= day && day <= to) as never,
  spikes: async (_project, from, { after, limit }) => ({
    results: [1, 2].map((hour) => ({
      projectId: "shop",
      subject: "project",
      startedAtMs: from + hour * 3_600_000,
      endedAtMs: undefined,
      peakPerMinute: 900,
      baseline: 10.5,
      threshold: 500,
      events: 1_200,
    })),
    next: `${limit} behind ${after}`,
  }),
});

async function answerTo(path: string): Promise<{ status: number; text: string }> {
  const response = await fetch((await effectsHttp(reader)) + path);
  return { status: response.status, text: await response.text() };
}

const asOf = '"as_of":{"PENSTOCK_HISTORICAL_0":0,"PENSTOCK_LIVE_0":7}';

describe("the HTTP port of the effects", () => {
  test.each([
    ["persons?distinct_id=ada", `${adaText},${asOf}}\n`],
    [`persons/${ada.uuid}`, `${adaText},${asOf}}\n`],
    [`persons/${ada.mergedFrom[0]?.toUpperCase()}`, `${adaText},${asOf}}\n`],
    [
      "persons",
      `{"results":[${adaText}},${adaText}}],"next":"7c1e9b62-3a4c-5d1e-8f00-123456789abc",${asOf}}\n`,
    ],
    [
      "persons?after=7c1e9b62-3a4c-5d1e-8f00-123456789abc&limit=1000",
      `{"results":[${adaText}}],"next":null,${asOf}}\n`,
    ],
    [
      `persons/${ada.uuid}/links`,
      `{"links":[{"a":"anon-1","b":"ada","kind":"identify","at":"1970-01-01T00:00:00.000Z","event_uuid":"018f","outcome":"merged"}],${asOf}}\n`,
    ],
    [
      "groups?type=company&key=acme",
      `{"type":"company","key":"acme","properties":{"seats":1.50},"created_at":"1970-01-01T00:00:00.000Z","updated_at":"1970-01-01T00:00:01.000Z","version":2,${asOf}}\n`,
    ],
    ["group-types", `{"results":["company","team"],"next":null,${asOf}}\n`],
    [
      "usage?from=2026-01-02",
      `{"days":[{"day":"2026-01-02","lane":"live","class":"alias","events":2,"duplicates":0},{"day":"2026-01-02","lane":"historical","class":"identified","events":9,"duplicates":0}],"billable":2,"historical":9,${asOf}}\n`,
    ],
  ])("returns the expected text for %s", async (path, text) => {
    expect(await answerTo(`/projects/shop/${path}`)).toEqual({ status: 200, text });
  });

  test("returns spikes in pages", async () => {
    const path = "/projects/shop/spikes?from=1970-01-02&limit=2&after=1%20me";
    expect(JSON.parse((await answerTo(path)).text)).toMatchObject({
      results: [
        { started_at: "1970-01-02T01:00:00.000Z", ended_at: null, baseline: 10.5 },
        { started_at: "1970-01-02T02:00:00.000Z" },
      ],
      next: "2 behind 1 me",
    });
  });

  test("rejects a usage request whose answer would be too large", async () => {
    const day = { day: "2026-01-02", lane: "live", class: "alias", events: 1, duplicates: 0 };
    const many = readerOf({
      usage: async () => Array.from({ length: 50_000 }, () => day) as never,
    });
    const response = await fetch(`${await effectsHttp(many)}/projects/shop/usage`);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("ask for fewer days");
  });
});

describe("the effects' HTTP port on an error", () => {
  test.each([
    "/",
    "/projects",
    "/projects/shop",
    "/projects/shop/people",
    "/projects/sh%6Fp/persons",
    "/projects/__proto__/constructor",
    "/projects/shop/persons?distinct_id=eve",
    "/projects/shop/persons/5d1e9b62-0000-5d1e-8f00-123456789abc",
    "/projects/shop/persons/ada",
    "/projects/shop/persons/ada/links",
    "/projects/shop/groups?type=company&key=initech",
  ])("returns 404 for %s", async (path) => {
    const { status, text } = await answerTo(path);
    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({ status: 404, code: "not_found" });
  });

  test.each([
    ["shop/persons?distinct_id=eve", "the project shop has no person with this distinct id"],
    [
      "sohp/persons?distinct_id=eve",
      "no event of a project sohp has been applied; did you mean shop?",
    ],
    ["other/groups?type=company&key=x", "no event of a project other has been applied"],
  ])("returns 404 for %s with a reason", async (path, detail) => {
    expect(JSON.parse((await answerTo(`/projects/${path}`)).text)).toMatchObject({ detail });
  });

  test.each([
    ["persons?limit=0", "limit"],
    ["persons?limit=1001", "limit"],
    ["persons?limit=1e2", "limit"],
    ["persons?limit=1&limit=2", "limit"],
    ["persons?after=", "after"],
    ["persons?after=ada", "after"],
    ["persons?distinct_id=", "distinct_id"],
    ["persons?distinct_id=a&limit=5", "limit"],
    ["persons?distinctid=a", "distinctid"],
    ["persons?__proto__=a", "__proto__"],
    ["groups?key=acme", "type"],
    ["groups", "type"],
    ["usage?from=2026-02-30", "from"],
    ["usage?to=yesterday", "to"],
    ["usage?from=2026-01-02&to=2026-01-01", "from"],
    ["spikes?from=2026-02-30", "from"],
    ["spikes?from=2026-01-01T00:00", "from"],
    ["persons?wait_for=7", "wait_for"],
    ["persons?wait_for=PENSTOCK_LIVE_0:-1", "wait_for"],
    ["persons?wait_for=PENSTOCK_LIVE_0:99999999999999999999", "wait_for"],
  ])("rejects %s and names the parameter %s", async (path, name) => {
    const { status, text } = await answerTo(`/projects/shop/${path}`);
    expect(status).toBe(400);
    const found = JSON.parse(text) as { code: string; detail: string };
    expect(found.code).toBe("invalid_parameter");
    expect(found.detail.startsWith(`${name}: `)).toBe(true);
  });

  test("returns 405 for DELETE and answers HEAD without a body", async () => {
    const url = `${await effectsHttp(reader)}/projects/shop/persons`;
    const put = await fetch(url, { method: "DELETE" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    const head = await fetch(url, { method: "HEAD" });
    const get = await fetch(url);
    expect(head.headers.get("content-length")).toBe(String((await get.text()).length));
    expect(await head.text()).toBe("");
  });

  test("serves no data if the Host header names another server", async () => {
    const url = new URL(await effectsHttp(reader));
    const statusFor = (path: string, host: string): Promise<number | undefined> =>
      new Promise((resolve, reject) =>
        request({ port: url.port, host: "127.0.0.1", path, headers: { host } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .once("error", reject)
          .end(),
      );
    const path = "/projects/shop/persons?distinct_id=ada";
    expect(await statusFor(path, "attacker.example")).toBe(403);
    expect(await statusFor(path, `localhost:${url.port}`)).toBe(200);
    expect(await statusFor("/livez", "attacker.example")).toBe(200);
  });

  test("is alive but not ready while the database is unavailable", async () => {
    const away = await effectsHttp(undefined);
    const failing = await effectsHttp(
      readerOf({ applied: async () => Promise.reject(new Error("no")) }),
    );
    for (const url of [away, failing]) {
      const answer = await fetch(`${url}/projects/shop/persons`);
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await answer.json()).toMatchObject({ code: "unavailable" });
    }
    expect((await fetch(`${away}/readyz`)).status).toBe(503);
    expect((await fetch(`${away}/livez`)).status).toBe(200);
    expect((await fetch(`${away}/metrics`)).status).toBe(200);
  });
});
