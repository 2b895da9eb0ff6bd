import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Answer,
  startTestGateway,
  type TestGateway,
  type TestProject,
  until,
} from "../../kit/gateway.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway({
    env: {
      PENSTOCK_REQUEST_TIMEOUT_MS: "600",
      PENSTOCK_ACK_TIMEOUT_MS: "200",
      PENSTOCK_TRUSTED_PROXIES: "127.0.0.1",
      PENSTOCK_RECORD_IP: "false",
    },
  });
});

afterAll(async () => {
  await gateway.stop();
});

type Event = Record<string, unknown>;
let sentAtSecond = 0;

/** As in SDKs, each attempt has a different `sent_at`. */
function bodyOf({ key }: TestProject, batch: Event[]): string {
  const second = String(sentAtSecond++ % 60).padStart(2, "0");
  return JSON.stringify({ api_key: key, batch, sent_at: `2026-11-26T10:00:${second}.5Z` });
}

function send(project: TestProject, batch: Event[]): Promise<Answer> {
  return gateway.post("/batch/", bodyOf(project, batch));
}

async function timedOut(attempt: () => Promise<Answer>): Promise<void> {
  gateway.nats.freeze();
  try {
    expect(await attempt()).toMatchObject({ status: 503, json: { code: "timeout" } });
  } finally {
    gateway.nats.thaw();
  }
}

async function counts(project: TestProject): Promise<Record<string, number>> {
  const counted: Record<string, number> = {};
  for (const { event } of await gateway.events(project))
    counted[String(event)] = (counted[String(event)] ?? 0) + 1;
  return counted;
}

const time = "2026-11-26T09:59:59.123Z";
const event = (name: string, more: Event = {}): Event => ({
  event: name,
  distinct_id: "u",
  properties: { $lib: "posthog-go" },
  ...more,
});

describe("a small request that is sent again after a timeout", () => {
  test.each([
    ["no uuid and no timestamp", {}],
    ["no uuid", { timestamp: time }],
    ["an empty uuid", { timestamp: time, uuid: "" }],
    ["the zero uuid", { timestamp: time, uuid: "00000000-0000-0000-0000-000000000000" }],
  ])("is stored once if its events have %s", async (_, more) => {
    const project = await gateway.project();
    const batch = ["a", "b", "c"].map((name) => event(name, more));
    await timedOut(() => send(project, batch));
    expect(await send(project, batch)).toMatchObject({ status: 200, json: { accepted: 3 } });
    expect(await counts(project)).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("is stored once if only some of its events have uuids", async () => {
    const project = await gateway.project();
    const uuid = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    const batch = [event("a"), event("b", { uuid }), event("c", { timestamp: time })];
    await timedOut(() => send(project, batch));
    expect(await send(project, batch)).toMatchObject({ status: 200, json: { accepted: 3 } });
    expect(await counts(project)).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("is stored twice with the same uuids if all events have uuids", async () => {
    const project = await gateway.project();
    const uuid = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    await timedOut(() => send(project, [event("a", { uuid })]));
    expect(await send(project, [event("a", { uuid })])).toMatchObject({ status: 200 });
    await until(async () => (await gateway.events(project)).length === 2);
    expect((await gateway.events(project)).map((one) => one["uuid"])).toEqual([uuid, uuid]);
  });

  test("is stored as a new event if the client added a uuid", async () => {
    const project = await gateway.project();
    await timedOut(() => send(project, [event("a", { timestamp: time })]));
    const batch = [event("a", { timestamp: time, uuid: "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c" })];
    expect(await send(project, batch)).toMatchObject({ status: 200 });
    await until(async () => (await gateway.events(project)).length === 2);
  });

  test("is stored once after several attempts that did not reach the store", async () => {
    const project = await gateway.project();
    const batch = [event("a"), event("b", { timestamp: time })];
    const compressed = () =>
      gateway.post("/batch/", gzipSync(bodyOf(project, batch)), { "content-encoding": "gzip" });
    gateway.nats.freeze();
    for (const attempt of [() => send(project, batch), compressed, () => send(project, batch)])
      expect(await attempt()).toMatchObject({ status: 503 });
    gateway.nats.thaw();
    expect(await compressed()).toMatchObject({ status: 200, json: { accepted: 2 } });
    expect(await counts(project)).toEqual({ a: 1, b: 1 });
  });

  test("is stored again only at a third attempt", async () => {
    const project = await gateway.project();
    const batch = [event("a"), event("b")];
    await timedOut(() => send(project, batch));
    await until(async () => (await gateway.events(project)).length === 2);
    expect(await send(project, batch)).toMatchObject({ status: 200 });
    expect(await counts(project)).toEqual({ a: 1, b: 1 });
    expect(await send(project, batch)).toMatchObject({ status: 200 });
    expect(await counts(project)).toEqual({ a: 2, b: 2 });
  });

  test("is stored twice if two clients sent it", async () => {
    const project = await gateway.project();
    const batch = [event("a")];
    gateway.nats.freeze();
    for (const { status } of await Promise.all([send(project, batch), send(project, batch)]))
      expect(status).toBe(503);
    gateway.nats.thaw();
    for (let sent = 0; sent < 2; sent++)
      expect(await send(project, batch)).toMatchObject({ status: 200 });
    expect(await counts(project)).toEqual({ a: 2 });
  });

  test("is stored again if it is sent from a different address", async () => {
    const project = await gateway.project();
    const body = bodyOf(project, [event("a", { timestamp: time })]);
    const from = (address: string) => gateway.post("/batch/", body, { "x-forwarded-for": address });
    await timedOut(() => from("192.0.2.1"));
    expect(await from("192.0.2.2")).toMatchObject({ status: 200 });
    expect(await from("192.0.2.1")).toMatchObject({ status: 200 });
    expect(await counts(project)).toEqual({ a: 2 });
  });

  test("is stored again if its content or project changed", async () => {
    const project = await gateway.project();
    const other = await gateway.project();
    const batch = [event("a", { timestamp: time })];
    await timedOut(() => send(project, batch));
    for (const more of [{ timestamp: "2026-11-26T09:59:59.124Z" }, { distinct_id: "v" }])
      expect(await send(project, [event("a", { timestamp: time, ...more })])).toMatchObject({
        status: 200,
      });
    expect(await send(other, batch)).toMatchObject({ status: 200 });
    await until(async () => (await gateway.events(project)).length === 3);
    expect(await counts(other)).toEqual({ a: 1 });
  });

  test("is a new request if its batch also contains other events", async () => {
    const project = await gateway.project();
    await timedOut(() => send(project, [event("a"), event("b")]));
    const answers = await Promise.all([
      send(project, [event("a"), event("b")]),
      send(project, [event("a"), event("b"), event("c")]),
      send(project, [event("d")]),
    ]);
    expect(answers.map(({ json }) => json["accepted"])).toEqual([2, 3, 1]);
    expect(await counts(project)).toEqual({ a: 2, b: 2, c: 1, d: 1 });
  });
});

test("a large request that is retried after a timeout is stored once", async () => {
  const project = await gateway.project();
  const batch = Array.from({ length: 3_000 }, (_, index) =>
    event("large", { properties: { index, padding: "x".repeat(300) } }),
  );
  await timedOut(() => send(project, batch));
  let answer = await send(project, batch);
  for (let tries = 0; answer.status === 503 && tries < 20; tries++) {
    await delay(50);
    answer = await send(project, batch);
  }
  expect(answer).toMatchObject({ status: 200, json: { accepted: 3_000 } });
  const indices = async () =>
    (await gateway.events(project)).map(({ properties }) => Number(properties["index"]));
  expect((await indices()).sort((a, b) => a - b)).toEqual(batch.map((_, index) => index));
  expect(await send(project, batch)).toMatchObject({ status: 200 });
  expect(await indices()).toHaveLength(6_000);
});
