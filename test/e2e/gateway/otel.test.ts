import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { otlpJson, otlpProtobuf, type TestSpan } from "../../kit/otlp-spans.ts";

const gateway = await gatewayForFile();
const protobufType = "application/x-protobuf";

const ids = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const chat: TestSpan = {
  ...ids,
  name: "chat",
  attributes: { "gen_ai.operation.name": "chat", "user.id": "u" },
};

async function send(path: string, body: Buffer | string, headers: Record<string, string>) {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    body: new Uint8Array(Buffer.from(body)),
    headers,
  });
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

describe("an OpenTelemetry trace request", () => {
  test("with an empty protobuf body is answered like a request without spans", async () => {
    const project = await gateway.project();
    const headers = { authorization: `Bearer ${project.key}`, "content-type": protobufType };
    const answer = await send("/i/v0/ai/otel", "", headers);
    expect(answer).toMatchObject({ status: 200, type: protobufType, body: Buffer.alloc(0) });
    const unknown = { ...headers, authorization: "Bearer phc_nobody" };
    expect((await send("/i/v0/ai/otel", "", unknown)).status).toBe(401);
    const json = { ...headers, "content-type": "application/json" };
    expect((await send("/i/v0/ai/otel", "", json)).status).toBe(400);
  });

  test.each(["/i/v0/ai/otel", "/i/v0/ai/otel/", "/i/v0/ai/otel/v1/traces"])(
    "is stored at %s in protobuf and JSON",
    async (path) => {
      const project = await gateway.project();
      const authorization = `Bearer ${project.key}`;
      const protobuf = otlpProtobuf([{ spans: [chat] }]);
      const json = otlpJson([{ spans: [chat] }]);
      const headers = { authorization, "content-type": protobufType };
      const empty = { status: 200, type: protobufType, body: Buffer.alloc(0) };
      expect(await send(path, protobuf, headers)).toEqual(empty);
      const zipped = { ...headers, "content-encoding": "gzip" };
      expect(await send(path, gzipSync(protobuf), zipped)).toEqual(empty);
      const asJson = { authorization, "content-type": "application/json" };
      const answer = await send(path, json, asJson);
      expect([answer.status, JSON.parse(answer.body.toString())]).toEqual([200, {}]);
      const events = await gateway.events(project);
      expect(events.map((event) => [event["event"], event["distinct_id"], event["uuid"]])).toEqual(
        Array(3).fill(["$ai_generation", "u", events[0]!["uuid"]]),
      );
    },
  );

  test("of many spans is stored completely", async () => {
    const project = await gateway.project();
    const headers = { authorization: `Bearer ${project.key}`, "content-type": protobufType };
    const spans = Array.from(
      { length: 900 },
      (_, at): TestSpan => ({
        ...chat,
        spanId: (at + 1).toString(16).padStart(16, "0"),
        attributes: { ...chat.attributes, text: "x".repeat(4_000) },
      }),
    );
    const large = send("/i/v0/ai/otel", gzipSync(otlpProtobuf([{ spans }])), {
      ...headers,
      "content-encoding": "gzip",
    });
    const small = send("/i/v0/ai/otel", otlpProtobuf([{ spans: [chat] }]), headers);
    expect([(await small).status, (await large).status]).toEqual([200, 200]);
    const events = await gateway.events(project);
    expect(events).toHaveLength(901);
    expect(new Set(events.map((event) => event["uuid"])).size).toBe(901);
  });

  test("is answered with the number of spans that are not stored", async () => {
    const project = await gateway.project();
    const authorization = `Bearer ${project.key}`;
    const deep = "[".repeat(200) + "]".repeat(200);
    let map: NonNullable<TestSpan["attributes"]> = {};
    for (let depth = 0; depth < 100; depth++) map = { map };
    const spans = [
      chat,
      { ...chat, attributes: { ...chat.attributes, "gen_ai.input.messages": deep } },
      { ...chat, attributes: { ...chat.attributes, map } },
    ];
    const json = await send("/i/v0/ai/otel", otlpJson([{ spans }]), {
      authorization,
      "content-type": "application/json",
    });
    expect([json.status, JSON.parse(json.body.toString())]).toEqual([
      200,
      { partialSuccess: { rejectedSpans: "2", errorMessage: expect.stringContaining("values") } },
    ]);
    const protobuf = await send("/i/v0/ai/otel", otlpProtobuf([{ spans }]), {
      authorization,
      "content-type": protobufType,
    });
    // Field 1 of the response with its length. Field 1 in it is the number of rejected spans.
    expect([protobuf.body[0], protobuf.body[3], protobuf.body[4]]).toEqual([0x0a, 0x08, 2]);
    expect(await gateway.events(project)).toHaveLength(2);
  });

  test("is rejected if it is malformed or has no known key", async () => {
    const project = await gateway.project();
    const large = otlpProtobuf([
      { spans: [{ ...chat, attributes: { ...chat.attributes, x: "x".repeat(50_000) } }] },
    ]);
    const type = { "content-type": protobufType };
    for (const [body, headers, status] of [
      [otlpProtobuf([{ spans: [chat] }]), type, 401],
      [otlpProtobuf([{ spans: [chat] }]), { ...type, authorization: "Bearer phc_nobody" }, 401],
      [large, { ...type, authorization: "Bearer phc_nobody" }, 401],
      [large.subarray(0, -1), { ...type, authorization: `Bearer ${project.key}` }, 400],
      ["x", { ...type, authorization: `Bearer ${project.key}` }, 400],
    ] as const) {
      const answer = await send("/i/v0/ai/otel", body, headers);
      expect([answer.status, answer.type]).toEqual([status, "application/problem+json"]);
    }
    expect(await gateway.events(project)).toEqual([]);
  });

  test("is rejected if none of its spans is valid", async () => {
    const project = await gateway.project();
    const deep = "[".repeat(200) + "]".repeat(200);
    const spans = [{ ...chat, attributes: { "gen_ai.input.messages": deep } }];
    const answer = await send("/i/v0/ai/otel", otlpProtobuf([{ spans }]), {
      authorization: `Bearer ${project.key}`,
      "content-type": protobufType,
    });
    expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([
      400,
      { code: "too_deep" },
    ]);
  });
});

test("an AI event in a multipart body is stored", async () => {
  const project = await gateway.project();
  const form = new FormData();
  form.append("event", new Blob(['{"event":"$ai_generation","distinct_id":"u"}']));
  form.append("event.properties", new Blob(['{"$ai_model":"m"}']));
  form.append("event.properties.$ai_input", new Blob(['["hi"]'], { type: "application/json" }));
  const send = (body: FormData) =>
    fetch(`${gateway.url}/i/v0/ai`, {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${project.key}` },
    });
  const answer = await send(form);
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { accepted_parts: [{ name: "event", length: 44 }, {}, { length: 6 }] },
  ]);
  expect((await gateway.events(project))[0]).toMatchObject({
    event: "$ai_generation",
    properties: { $ai_model: "m", $ai_input: ["hi"] },
  });
  const unkeyed = new FormData();
  unkeyed.append("event", new Blob(['{"event":"$ai_generation"}']));
  const refused = await send(unkeyed);
  expect([refused.status, await refused.json()]).toMatchObject([400, { code: "invalid_payload" }]);
});

test("the v1 protocol is available at the path for AI events too", async () => {
  const project = await gateway.project();
  const uuid = "0199b1c2-2222-7000-8000-00000000000b";
  const answer = await gateway.post(
    "/i/v1/ai/events",
    {
      created_at: "2026-01-31T23:59:59.999Z",
      batch: [
        {
          event: "$ai_generation",
          distinct_id: "u",
          uuid,
          timestamp: "2026-01-31T23:59:59Z",
          properties: { $ai_trace_id: "t" },
        },
      ],
    },
    { authorization: `Bearer ${project.key}` },
  );
  expect([answer.status, answer.json]).toMatchObject([
    200,
    { results: { [uuid]: { result: "ok" } } },
  ]);
});
