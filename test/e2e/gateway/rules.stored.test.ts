// The rules of a project, for each way by which an event reaches the gateway.

import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { applyRules } from "../../../src/gateway/projects/rules/versions.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";
import { otlpJson, otlpProtobuf } from "../../kit/otlp-spans.ts";
import { untilRejected } from "../../kit/rejected.ts";
import { v1Body, v1Event, v1Headers, v1Path } from "../../kit/v1-requests.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();
const { key } = project;
const crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

await withRules(`rules:
  - { name: noise, match: { event: ["noise*", $ai_embedding] }, drop: true }
  - { name: bots, match: { event: seen, bot: true }, drop: true }
  - { name: wrong, match: { event: order, properties: { total: { absent: true } } }, quarantine: true }
  - { name: models, match: { event: $ai_generation, properties: { $ai_model: secret } }, quarantine: true }
  - { name: sdk, match: { sdk: posthog-rs, sdk_version: "1.*" }, set: { from_rust: true } }
  - { name: history, match: { lane: historical }, set: { imported: true } }
  - name: no-emails
    remove: [email, $set.email, $set_once.email, $ai_user_email]
`);

async function withRules(text: string): Promise<void> {
  const connection = await connect({ servers: gateway.nats.url });
  const place = { prefix: gateway.config.subjectPrefix, replicas: 1, id: project.id };
  await applyRules(connection, { ...place, text, author: "me@here" });
  await connection.close();
  const noise = { api_key: key, batch: [{ event: "noise", distinct_id: "nobody" }] };
  await until(async () => (await gateway.post("/batch/", noise)).json["filtered"] === 1);
}

/** Returns the status and the answer, without the parts that vary. */
async function send(path: string, body: unknown, headers: Record<string, string> = {}) {
  const sent = body instanceof Uint8Array ? new Uint8Array(body) : textOf(body);
  const response = await fetch(gateway.url + path, { method: "POST", body: sent, headers });
  const text = await response.text();
  return text === "" ? { status: response.status } : (JSON.parse(text) as object);
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : JSON.stringify(body);
}

const stored = async (id: string, lane: "live" | "historical" = "live") =>
  (await gateway.events(project, lane)).filter((event) => event["distinct_id"] === id);

const span = (id: string, attributes: Record<string, string>) => ({
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  name: "chat",
  attributes: { "gen_ai.operation.name": "chat", "user.id": id, ...attributes },
});
const otlp = { authorization: `Bearer ${key}` };
const json = { ...otlp, "content-type": "application/json" };
const protobuf = { ...otlp, "content-type": "application/x-protobuf" };
const person = { email: "a@b.c", plan: "pro" };

interface Case {
  readonly title: string;
  readonly send: (id: string) => Promise<unknown>;
  readonly answer: object;
  /** The members of each stored record. */
  readonly stored: readonly object[];
  readonly lane?: "historical";
  readonly rejected?: object;
}

const cases: readonly Case[] = [
  {
    title: "/engage: a person field is removed from an object without a name",
    send: (id) => send("/engage/", { $token: key, $distinct_id: id, $set: person }),
    answer: { accepted: 1, dropped: 0 },
    stored: [{ event: "$identify", $set: { plan: "pro" }, rules: 1 }],
  },
  {
    title: "/engage: a rule for a name applies to an object with this name only",
    send: (id) =>
      send("/engage", [
        { $token: key, $distinct_id: id, event: "noise 1", $set: person },
        { $token: key, $distinct_id: id, $set: { plan: "free" } },
      ]),
    answer: { accepted: 1, dropped: 0, filtered: 1 },
    stored: [{ event: "$identify", $set: { plan: "free" } }],
  },
  {
    title: "/capture/: a dropped single event is counted as filtered",
    send: (id) => send("/capture/", { api_key: key, event: "noise", distinct_id: id }),
    answer: { accepted: 0, dropped: 0, filtered: 1 },
    stored: [],
  },
  {
    title: "/batch/: imported history has its own rule",
    send: (id) => {
      const event = { event: "e", distinct_id: id, timestamp: "2026-01-02T03:04:05Z" };
      return send("/batch/", { api_key: key, historical_migration: true, batch: [event] });
    },
    answer: { accepted: 1, dropped: 0 },
    stored: [{ event: "e", properties: { imported: true }, rules: 1 }],
    lane: "historical",
  },
  {
    title: "OTLP as JSON: a dropped and a quarantined span are a success",
    send: (id) => {
      const spans = [
        span(id, { "gen_ai.request.model": "gpt" }),
        span(id, { "gen_ai.request.model": "secret" }),
        span(id, { "gen_ai.operation.name": "embeddings" }),
      ];
      return send("/i/v0/ai/otel", otlpJson([{ spans }]), json);
    },
    answer: {},
    stored: [{ event: "$ai_generation", properties: { $ai_model: "gpt" } }],
    rejected: { reason: "rule", rule: "models", rules: 1 },
  },
  {
    title: "OTLP as protobuf: a property is removed",
    send: (id) =>
      send(
        "/i/v0/ai/otel/v1/traces",
        otlpProtobuf([{ spans: [span(id, { email: "a@b.c", plan: "pro" })] }]),
        protobuf,
      ),
    answer: { status: 200 },
    stored: [{ event: "$ai_generation", properties: { plan: "pro" }, rules: 1 }],
  },
  {
    title: "v1: each event has its result, and the rules see the SDK of the header",
    send: (id) => {
      const of = { distinct_id: id };
      const batch = [
        v1Event({ ...of, event: "e", properties: { email: "a@b.c", n: 1 } }),
        v1Event({ ...of, event: "noise" }),
        v1Event({ ...of, event: "order" }),
      ];
      return send(v1Path, v1Body(batch), v1Headers(key)).then((answer) =>
        Object.values((answer as { readonly results: object }).results),
      );
    },
    answer: [
      { result: "ok" },
      { result: "drop", details: "dropped_by_rule" },
      { result: "drop", details: "quarantined" },
    ],
    stored: [
      {
        properties: { n: 1, from_rust: true, $lib: "posthog-rs", $lib_version: "1.2.3" },
        rules: 1,
      },
    ],
    rejected: { reason: "rule", rule: "wrong", rules: 1 },
  },
  {
    title: "a bot is recognised by the header of each request, also on one connection",
    send: async (id) => {
      const event = { api_key: key, event: "seen", distinct_id: id };
      const answers = [];
      for (const agent of [crawler, browser, crawler])
        answers.push(await send("/capture/", event, { "user-agent": agent }));
      return answers.map((answer) => (answer as { readonly accepted: number }).accepted);
    },
    answer: [0, 1, 0],
    stored: [{ event: "seen" }],
  },
  {
    title: "$raw_user_agent has precedence over the header of the request",
    send: (id) => {
      const seen = (agent: string) => ({
        event: "seen",
        distinct_id: id,
        properties: { $raw_user_agent: agent },
      });
      const batch = [seen(crawler), seen(browser), seen("")];
      return send("/batch/", { api_key: key, batch }, { "user-agent": crawler });
    },
    answer: { accepted: 1, dropped: 0, filtered: 2 },
    stored: [{ properties: { $raw_user_agent: browser } }],
  },
  {
    title: "v1: a bot is recognised by the header",
    send: (id) => {
      const batch = [v1Event({ event: "seen", distinct_id: id })];
      const headers = { ...v1Headers(key), "user-agent": crawler };
      return send(v1Path, v1Body(batch), headers).then((answer) =>
        Object.values((answer as { readonly results: object }).results),
      );
    },
    answer: [{ result: "drop", details: "dropped_by_rule" }],
    stored: [],
  },
];

describe("rules apply to events by", () => {
  test.each(cases.map((one, at) => ({ ...one, id: `person-${at}` })))("$title", async (one) => {
    const { id, lane } = one;
    const before =
      one.rejected === undefined ? 0 : (await untilRejected(gateway, project, 0)).length;
    const answer = await one.send(id);
    expect(answer).toEqual("accepted" in one.answer ? { status: "Ok", ...one.answer } : one.answer);
    const records = await stored(id, lane);
    expect(records).toMatchObject(one.stored);
    expect(records).toHaveLength(one.stored.length);
    expect(JSON.stringify(records)).not.toContain("a@b.c");
    if (one.rejected === undefined) return;
    const rejected = await untilRejected(gateway, project, before + 1);
    expect(rejected).toHaveLength(before + 1);
    expect(rejected.at(-1)).toMatchObject(one.rejected);
  });
});
