import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OtlpTraces } from "../../../../src/gateway/http/conversion/otlp-traces.ts";
import { oneStored } from "../../../kit/http-server.ts";
import { otlpJson, otlpProtobuf, type TestSpan, type TestSpans } from "../../../kit/otlp-spans.ts";

interface Event {
  readonly event: string;
  readonly distinct_id: string;
  readonly uuid: string;
  readonly timestamp?: string;
  readonly properties: Record<string, unknown>;
}

interface Converted {
  readonly events: readonly Event[];
  readonly code: string | undefined;
  readonly detail: string;
  readonly answer: { readonly rejectedSpans: string; readonly errorMessage: string } | undefined;
}

function tracesOf(contentType: string): OtlpTraces {
  return new OtlpTraces({ kind: "otlp", apiKey: "phc_key", contentType });
}

function converted(body: Buffer | string, type: string): Converted {
  const traces = tracesOf(type);
  const value = traces.convert(Buffer.from(body));
  if (!Buffer.isBuffer(value))
    return { events: [], code: value.code, detail: value.detail, answer: undefined };
  const batch = JSON.parse(value.toString()) as { api_key: string; batch: Event[] };
  expect(batch.api_key).toBe("phc_key");
  const { body: text } = traces.answer(oneStored);
  const answer =
    typeof text === "string"
      ? (JSON.parse(text) as { partialSuccess?: Converted["answer"] }).partialSuccess
      : undefined;
  return { events: batch.batch, code: undefined, detail: "", answer };
}

const json = (groups: readonly TestSpans[]) => converted(otlpJson(groups), "application/json");
const protobuf = (groups: readonly TestSpans[]) =>
  converted(otlpProtobuf(groups), "application/x-protobuf");

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const parentSpanId = "00f067aa0ba902b7";

function eventOf(span: TestSpan, resource: TestSpans["resource"] = {}): Event {
  const groups = [{ resource, scopeVersion: "1.2.3", spans: [{ traceId, spanId, ...span }] }];
  const { events } = json(groups);
  expect(events).toHaveLength(1);
  expect(protobuf(groups).events).toEqual(events);
  return events[0]!;
}

describe("an OpenTelemetry span as an event", () => {
  test("omits numbers that JSON cannot represent", () => {
    const text = otlpJson([
      { spans: [{ traceId, spanId, attributes: { "gen_ai.a": 0.5, "gen_ai.b": "NaN" } }] },
      { spans: [{ traceId, spanId, attributes: { "gen_ai.c": 1 } }] },
    ]).replace("0.5", "NaN");
    const { events } = converted(text, "application/json");
    expect(events).toHaveLength(2);
    expect(events[0]!.properties).toMatchObject({ "gen_ai.b": "NaN" });
    expect(events[0]!.properties).not.toHaveProperty(["gen_ai.a"]);
  });

  test("has the ids, timestamps, model, tokens and messages of the span", () => {
    const event = eventOf(
      {
        parentSpanId,
        name: "chat gpt-5",
        startNs: 1_764_164_209_123_456_789n,
        endNs: 1_764_164_210_623_456_789n,
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.request.model": "gpt-5",
          "gen_ai.response.model": "gpt-5-2026",
          "gen_ai.provider.name": "openai",
          "gen_ai.system": "other",
          "gen_ai.usage.input_tokens": 12,
          "gen_ai.usage.output_tokens": 3,
          "gen_ai.usage.cache_read.input_tokens": 4,
          "gen_ai.input.messages": '[{"role":"user","content":"hi 😀"}]',
          "gen_ai.output.messages": '[{"role":"assistant","content":"ho","finish_reason":"stop"}]',
          "gen_ai.system_instructions": '[{"type":"text","content":"be brief"}]',
          "gen_ai.request.temperature": 0.5,
          "gen_ai.conversation.id": "thread-1",
          "server.address": "api.example.com",
          "app.list": ["a", 1, true, { b: null, c: [2.5] }],
          "app.bytes": Uint8Array.of(1, 171),
        },
      },
      {
        "service.name": "shop",
        "posthog.distinct_id": "user-1",
        "host.name": "h",
        "process.pid": 1,
      },
    );
    expect(event).toEqual({
      event: "$ai_generation",
      distinct_id: "user-1",
      uuid: event.uuid,
      timestamp: "2025-11-26T13:36:49.123Z",
      properties: {
        "service.name": "shop",
        $geoip_disable: true,
        $ai_trace_id: traceId,
        $ai_span_id: spanId,
        $ai_parent_id: parentSpanId,
        $ai_ingestion_source: "otel",
        $lib: "posthog-otel",
        $lib_version: "1.2.3",
        $ai_span_name: "chat gpt-5",
        $ai_latency: 1.5,
        $ai_model: "gpt-5-2026",
        $ai_provider: "openai",
        $ai_input_tokens: 12,
        $ai_output_tokens: 3,
        $ai_cache_read_input_tokens: 4,
        $ai_base_url: "api.example.com",
        $ai_input: [
          { role: "system", content: "be brief" },
          { role: "user", content: "hi 😀" },
        ],
        $ai_output_choices: [{ role: "assistant", content: "ho", finish_reason: "stop" }],
        $ai_stop_reason: "stop",
        $ai_session_id: "thread-1",
        "gen_ai.conversation.id": "thread-1",
        "gen_ai.request.temperature": 0.5,
        "app.list": ["a", 1, true, { c: [2.5] }],
        "app.bytes": "01ab",
      },
    });
    expect(event.uuid).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(eventOf({ attributes: { "gen_ai.x": 1 } }).uuid).toBe(event.uuid);
    expect(eventOf({ spanId: parentSpanId, attributes: { "gen_ai.x": 1 } }).uuid).not.toBe(
      event.uuid,
    );
  });

  test.each([
    [{ "gen_ai.operation.name": "chat" }, "$ai_generation"],
    [{ "gen_ai.operation.name": "text_completion" }, "$ai_generation"],
    [{ "gen_ai.operation.name": "embeddings" }, "$ai_embedding"],
    [{ "gen_ai.operation.name": "execute_tool" }, "$ai_span"],
    [{ "gen_ai.request.model": "m" }, "$ai_span"],
    [{ "llm.request.type": "completion" }, "$ai_generation"],
    [{ "llm.request.type": "embedding" }, "$ai_embedding"],
    [{ "llm.request.type": "rerank" }, "$ai_span"],
    [{ "ai.operationId": "ai.generateText.doGenerate" }, "$ai_generation"],
    [{ "ai.operationId": "ai.streamText.doStream" }, "$ai_generation"],
    [{ "ai.operationId": "ai.embedMany.doEmbed" }, "$ai_embedding"],
    [{ "ai.operationId": "ai.toolCall", "gen_ai.operation.name": "chat" }, "$ai_span"],
    [{ "ai.usage.x": 1, "gen_ai.operation.name": "chat" }, "$ai_generation"],
    [{ "openinference.span.kind": "LLM" }, "$ai_generation"],
    [{ "openinference.span.kind": "EMBEDDING" }, "$ai_embedding"],
    [{ "openinference.span.kind": "CHAIN" }, "$ai_span"],
    [{ "langfuse.observation.type": "generation" }, "$ai_generation"],
    [{ "pydantic_ai.agent_name": "a" }, "$ai_span"],
    [{ "traceloop.span.kind": "workflow" }, "$ai_span"],
    [{ "eve.session.id": "s" }, "$ai_span"],
  ])("with %j is %s", (attributes, expected) => {
    expect(eventOf({ parentSpanId, attributes }).event).toBe(expected);
    const root = expected === "$ai_span" ? "$ai_trace" : expected;
    expect(eventOf({ attributes }).event).toBe(root);
    expect(eventOf({ attributes, parentSpanId: "0".repeat(16) }).event).toBe(root);
  });

  test("keeps the digits of an integer that a double cannot hold", () => {
    const digits = "12345678901234567890";
    const attribute = (key: string, value: string) => `{"key":"${key}","value":{${value}}}`;
    const attributes = [
      attribute("gen_ai.system", '"stringValue":"x"'),
      attribute("n", `"intValue":-${digits.slice(0, 19)}`),
      attribute("small", '"intValue":1234567890123456'),
      attribute("gen_ai.tool.call.arguments", `"stringValue":"{\\"id\\":${digits},\\"x\\":1.5}"`),
    ];
    const text = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"s","attributes":[${attributes.join()}]}]}]}]}`;
    expect(converted(text, "application/json").events[0]?.properties).toMatchObject({
      n: `-${digits.slice(0, 19)}`,
      small: 1_234_567_890_123_456,
      $ai_input_state: { id: digits, x: 1.5 },
    });
  });

  test("is not created without an attribute of a language model", () => {
    const spans = [
      { attributes: { "http.request.method": "GET", "logfire.msg": "x" } },
      { attributes: {} },
      { attributes: { "gen_ai.system": "openai" } },
    ];
    const { events, answer } = json([{ spans }]);
    expect(events).toHaveLength(1);
    expect(answer).toEqual({ rejectedSpans: "0", errorMessage: expect.stringMatching(/: 2$/) });
    expect(json([{ spans: [spans[2]!] }]).answer).toBeUndefined();
    expect(json([]).answer).toBeUndefined();
  });

  test.each([
    ["5", "the span is not an object"],
    ["[]", "the span is not an object"],
    [
      '{"attributes":[{"key":"gen_ai.system","value":{"stringValue":5}}]}',
      "the language-model attributes of the span have no readable value",
    ],
  ])("is not created from the span %s", (span, reason) => {
    const { answer } = converted(
      `{"resourceSpans":[{"scopeSpans":[{"spans":[${span},{"name":"other"}]}]}]}`,
      "application/json",
    );
    expect(answer).toEqual({
      rejectedSpans: "1",
      errorMessage: `Spans that are not stored: 1 (${reason})`,
    });
  });
});

describe("a span", () => {
  const ai = { "gen_ai.system": "openai" };

  test.each([
    [{ "ai.telemetry.metadata.posthog_distinct_id": "a", "posthog.distinct_id": "b" }, {}, "a"],
    [{ "posthog.distinct_id": "b", "user.id": "c" }, { "posthog.distinct_id": "d" }, "b"],
    [{ "user.id": "c" }, { "posthog.distinct_id": "d" }, "c"],
    [{ "posthog.distinct_id": "" }, { "posthog.distinct_id": "d", "user.id": "e" }, "d"],
    [{ "posthog.distinct_id": 42 }, { "user.id": "e" }, "e"],
    [{ "langfuse.user.id": "f" }, {}, "f"],
  ])(
    "with the attributes %j in a resource with %j has the distinct id %s",
    (attributes, resource, id) => {
      expect(eventOf({ attributes: { ...ai, ...attributes } }, resource).distinct_id).toBe(id);
    },
  );

  test("without a person has the distinct id of its session or trace", () => {
    const idOf = (span: TestSpan, resource = {}) =>
      eventOf(
        {
          attributes: { ...ai, ...span.attributes },
          ...(span.traceId ? { traceId: span.traceId } : {}),
        },
        resource,
      ).distinct_id;
    const ofTrace = idOf({});
    expect(ofTrace).toMatch(/^[\da-f-]{36}$/);
    expect(idOf({})).toBe(ofTrace);
    expect(idOf({ traceId: "1".repeat(32) })).not.toBe(ofTrace);
    const ofSession = idOf({ attributes: { $ai_session_id: "s" } });
    expect(idOf({ traceId: "1".repeat(32), attributes: { "gen_ai.conversation.id": "s" } })).toBe(
      ofSession,
    );
    expect(idOf({}, { $ai_session_id: "s" })).toBe(ofSession);
    const spans = [{ attributes: ai }, { attributes: ai, traceId: "0".repeat(32) }];
    const [one, other] = json([{ spans }]).events;
    expect(one!.distinct_id).toBe(other!.distinct_id);
    expect([one!.timestamp, one!.properties["$ai_trace_id"]]).toEqual([undefined, undefined]);
    const others = [...spans, { attributes: ai }];
    expect(json([{ spans: others }]).events[0]!.distinct_id).not.toBe(one!.distinct_id);
  });

  test("without ids has the same uuid when its request is sent again", () => {
    const spans = [{ attributes: ai }, { attributes: ai }, { traceId, attributes: ai }];
    for (const each of [json, protobuf]) {
      const { events } = each([{ spans }]);
      expect(new Set(events.map(({ uuid }) => uuid)).size).toBe(3);
      expect(each([{ spans }]).events).toEqual(events);
      const others = each([{ spans: [...spans, { attributes: ai }] }]).events;
      expect(others[0]!.uuid).not.toBe(events[0]!.uuid);
    }
  });
});

test.each<[TestSpan, Record<string, unknown>]>([
  [
    { status: { code: 2, message: "provider failed" } },
    { $ai_is_error: true, $ai_error: "provider failed", $ai_http_status: 500 },
  ],
  [
    {
      status: { code: 2, message: "Status code: 418" },
      events: [
        {
          name: "exception",
          attributes: { "exception.type": "RateLimit", "exception.message": "HTTP 429" },
        },
      ],
    },
    { $ai_error: "RateLimit: HTTP 429", $ai_http_status: 429 },
  ],
  [
    { status: { code: 2 }, attributes: { "gen_ai.x": 1, "http.response.status_code": 503 } },
    { $ai_error: "OpenTelemetry span status error", $ai_http_status: 503 },
  ],
  [
    { status: { code: 2 }, attributes: { "gen_ai.x": 1, $ai_error: "own", $ai_http_status: 418 } },
    { $ai_is_error: true, $ai_error: "own", $ai_http_status: 418 },
  ],
])("the error of a failed span becomes properties: %j", (span, expected) => {
  expect(eventOf({ attributes: { "gen_ai.x": 1 }, ...span }).properties).toMatchObject(expected);
  const { properties } = eventOf({ attributes: { "gen_ai.x": 1 }, ...span, status: { code: 1 } });
  expect(properties).not.toHaveProperty("$ai_is_error");
});

describe("the attribute names of a library", () => {
  const user = { role: "user", content: "hi" };
  const assistant = { role: "assistant", content: "ho" };

  test.each<[string, TestSpan, Record<string, unknown>]>([
    [
      "Vercel's AI SDK",
      {
        attributes: {
          "ai.operationId": "ai.generateText.doGenerate",
          "ai.model.id": "gpt-5",
          "ai.model.provider": "openai.chat",
          "ai.prompt.messages": JSON.stringify([user]),
          "ai.response.text": "ho",
          "ai.response.finishReason": "stop",
          "ai.usage.promptTokens": 7,
          "ai.usage.completionTokens": 2,
          "ai.telemetry.functionId": "chat",
          "ai.telemetry.metadata.$ai_session_id": "s",
          "ai.telemetry.metadata.secret": "x",
        },
      },
      {
        $ai_model: "gpt-5",
        $ai_provider: "openai.chat",
        $ai_input: [user],
        $ai_output_choices: [assistant],
        $ai_stop_reason: "stop",
        functionId: "chat",
        $ai_input_tokens: 7,
        $ai_output_tokens: 2,
        $ai_session_id: "s",
        $ai_lib: "opentelemetry/vercel-ai",
      },
    ],
    [
      "a tool call of Vercel's AI SDK",
      {
        parentSpanId,
        attributes: {
          "ai.operationId": "ai.toolCall",
          "ai.toolCall.name": "weather",
          "ai.toolCall.args": '{"city":"Rome"}',
          "ai.toolCall.result": "sunny",
        },
      },
      { $ai_span_name: "weather", $ai_input_state: { city: "Rome" }, $ai_output_state: "sunny" },
    ],
    [
      "OpenInference",
      {
        attributes: {
          "openinference.span.kind": "LLM",
          "llm.model_name": "m",
          "llm.system": "anthropic",
          "llm.token_count.prompt": 5,
          "llm.token_count.completion": 6,
          "llm.input_messages.0.message.role": "user",
          "llm.input_messages.0.message.content": "hi",
          "llm.output_messages.0.message.role": "assistant",
          "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
          "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
          "llm.invocation_parameters": '{"temperature":1}',
          "session.id": "s",
        },
      },
      {
        $ai_model: "m",
        $ai_provider: "anthropic",
        $ai_input: [user],
        $ai_session_id: "s",
        $ai_input_tokens: 5,
        $ai_output_tokens: 6,
        $ai_model_parameters: { temperature: 1 },
        $ai_output_choices: [
          {
            role: "assistant",
            tool_calls: [{ type: "function", function: { name: "f", arguments: "{}" } }],
          },
        ],
      },
    ],
    [
      "OpenInference without messages",
      {
        attributes: { "openinference.span.kind": "LLM", "input.value": "hi", "output.value": "ho" },
      },
      { $ai_input: [user], $ai_output_choices: [assistant] },
    ],
    [
      "Traceloop",
      {
        attributes: {
          "llm.request.type": "chat",
          "gen_ai.system": "OpenAI",
          "gen_ai.prompt.10.role": "user",
          "gen_ai.prompt.10.content": "last",
          "gen_ai.prompt.2.role": "user",
          "gen_ai.prompt.2.content": "hi",
          "gen_ai.completion.0.role": "assistant",
          "gen_ai.completion.0.content": "ho",
          "gen_ai.completion.0.finish_reason": "length",
          "gen_ai.usage.prompt_tokens": 1,
          "llm.request.functions.0.name": "f",
        },
      },
      {
        $ai_provider: "OpenAI",
        $ai_input: [user, { role: "user", content: "last" }],
        $ai_stop_reason: "length",
        $ai_input_tokens: 1,
        $ai_tools: [{ name: "f" }],
        $ai_lib: "opentelemetry/traceloop",
      },
    ],
    [
      "Pydantic AI",
      {
        attributes: {
          "pydantic_ai.all_messages": JSON.stringify([user, assistant]),
          "logfire.msg": "agent run",
          "gen_ai.agent.name": "clerk",
          model_name: "gpt-5",
        },
      },
      {
        $ai_span_name: "clerk",
        $ai_model: "gpt-5",
        $ai_input_state: user,
        $ai_output_state: assistant,
        $ai_lib: "opentelemetry/pydantic-ai",
      },
    ],
    [
      "Langfuse",
      {
        attributes: {
          "langfuse.observation.type": "generation",
          "langfuse.observation.model.name": "m",
          "langfuse.observation.input": JSON.stringify([user]),
          "langfuse.observation.output": "ho",
          "langfuse.observation.usage_details": '{"input":3,"output":4}',
          "langfuse.session.id": "s",
        },
      },
      {
        $ai_model: "m",
        $ai_input: [user],
        $ai_output_choices: [assistant],
        $ai_input_tokens: 3,
        $ai_output_tokens: 4,
        $ai_session_id: "s",
      },
    ],
    [
      "LangWatch",
      {
        attributes: {
          "gen_ai.operation.name": "chat",
          "langwatch.input": JSON.stringify({ type: "json", value: [user] }),
          "langwatch.output": JSON.stringify({ type: "text", value: "ho" }),
        },
      },
      { $ai_input: [user], $ai_output_choices: [assistant] },
    ],
    [
      "messages as events of the span",
      {
        attributes: { "gen_ai.operation.name": "chat" },
        events: [
          { name: "gen_ai.user.message", attributes: { content: "hi" } },
          { name: "gen_ai.choice", attributes: { message: JSON.stringify(assistant) } },
        ],
      },
      { $ai_input: [user], $ai_output_choices: [assistant] },
    ],
    [
      "messages as Logfire writes them",
      {
        attributes: {
          "gen_ai.operation.name": "chat",
          events: JSON.stringify([
            { "event.name": "gen_ai.user.message", content: "hi" },
            { "event.name": "gen_ai.choice", message: assistant },
          ]),
        },
      },
      { $ai_input: [user], $ai_output_choices: [assistant] },
    ],
  ])("become PostHog properties: %s", (_title, span, expected) => {
    const { properties } = eventOf(span);
    expect(properties).toMatchObject(expected);
    for (const name of Object.keys(span.attributes ?? {}))
      if (/^(?:ai|llm|langfuse|langwatch|openinference)\./.test(name))
        expect(properties).not.toHaveProperty([name]);
  });
});

describe("an OpenTelemetry request", () => {
  const ai = { attributes: { "gen_ai.x": 1 } };

  test.each([
    ["a byte", "\x0a"],
    ["text", "xyz"],
    ["a length past the end", "\x0a\x7fab"],
    ["the field 0", "\x02\x00"],
    ["a group that does not end", "\x13\x08\x01"],
    ["a group that did not begin", "\x14"],
    ["an endless varint", `\x08${"\xff".repeat(11)}`],
  ])("is rejected with the byte position if its protobuf is malformed (%s)", (_title, text) => {
    const answer = converted(Buffer.from(text, "latin1"), "application/x-protobuf");
    expect(answer.code).toBe("invalid_payload");
    expect(answer.detail).toMatch(/protobuf: .*at byte \d+/);
  });

  const join = (...parts: readonly (Buffer | string)[]) =>
    Buffer.concat(
      parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)),
    );
  const message = (field: number, ...parts: readonly (Buffer | string)[]) => {
    const bytes = join(...parts);
    return join(Buffer.from([field * 8 + 2, bytes.length]), bytes);
  };
  const aiAttribute = message(9, message(1, "gen_ai.x"), message(2, "\x18\x01"));

  test.each([
    ["a name that is a number", "\x28\x07", {}],
    ["a start that is text", message(7, "now"), {}],
    ["an id of a fixed length", "\x09abcdefgh", {}],
    ["a group", "\x2b\x08\x01\x12\x01x\x13\x14\x2c", {}],
    ["a value that is text for a number", message(9, message(1, "a"), message(2, "\x1a\x01x")), {}],
    ["a status that is a number", "\x78\x02", {}],
    [
      "another value of the same attribute",
      message(9, message(1, "a"), message(2, "\x1d1234\x18\x05")),
      { a: 5 },
    ],
  ])("loses only a protobuf field with a wrong type: %s", (_title, field, more) => {
    const body = message(1, message(2, message(2, field, aiAttribute, message(5, "n"))));
    const { events } = converted(body, "application/x-protobuf");
    expect(events.map(({ properties }) => properties)).toEqual([
      expect.objectContaining({ "gen_ai.x": 1, $ai_span_name: "n", ...more }),
    ]);
    expect(events[0]!.properties).not.toHaveProperty("$ai_is_error");
  });

  test("is rejected if its only language-model attribute has no value", () => {
    const span = message(2, message(9, message(1, "gen_ai.x")));
    const traces = tracesOf("application/x-protobuf");
    traces.convert(message(1, message(2, span)));
    const answer = Buffer.from(traces.answer(oneStored).body as Uint8Array).toString("latin1");
    expect(answer).toContain(
      "Spans that are not stored: 1 (the language-model attributes of the span have no readable value)",
    );
  });

  test("loses only the truncated part of its protobuf", () => {
    const good = message(2, aiAttribute);
    for (const parts of [
      [message(2, message(2, "\x2a\x7f"), good)],
      [message(2, good, "\x12\x7f")],
      [message(2, good), "\x12\x7f"],
      [message(2, message(1, "\x12\x7f"), good, good.subarray(0, 1))],
    ]) {
      const traces = tracesOf("application/x-protobuf");
      const body = join(message(1, ...parts), message(1, message(2, good)));
      const batch = Buffer.from(traces.convert(body) as Buffer).toString();
      expect((JSON.parse(batch) as { batch: unknown[] }).batch).toHaveLength(2);
      const answer = Buffer.from(traces.answer(oneStored).body as Uint8Array).toString("latin1");
      expect(answer).toMatch(/Spans that are not stored: 1 .*at byte \d+/);
    }
  });

  test.each([
    ['{"resource":5,"scopeSpans":[{"spans":[SPAN]}]}', 1, "0"],
    ['{"scopeSpans":[5,{"scope":[],"spans":[SPAN]},null]}', 1, "0"],
    ['{"scopeSpans":{}},{"scopeSpans":[{"spans":"x"},{"spans":[SPAN]}]}', 1, "2"],
    ['5,{"scopeSpans":[{"spans":[SPAN,{"name":tru},SPAN]}]}', 2, "1"],
    ['{"scopeSpans":null},{"scopeSpans":[{"scope":{"version":tru},"spans":[5,SPAN]}]}', 1, "1"],
    [
      '{"scopeSpans":[{"spans":[{"name":5,"traceId":[],"status":"x","events":{},ATTRIBUTES}]}]}',
      1,
      "0",
    ],
  ])("loses only the part of its JSON with a wrong type: %s", (text, stored, lost) => {
    const attributes = '"attributes":[{"key":"gen_ai.x","value":{"intValue":1}},5,{"key":{}}]';
    const filled = text.replaceAll("SPAN", `{${attributes}}`).replaceAll("ATTRIBUTES", attributes);
    const { events, answer } = converted(`{"resourceSpans":[${filled}]}`, "application/json");
    expect(events).toHaveLength(stored);
    expect(answer?.rejectedSpans ?? "0").toBe(lost);
  });

  test("is rejected if it is truncated within a group of spans", () => {
    const whole = otlpProtobuf([{ spans: [ai] }, { spans: [ai] }]);
    const half = otlpProtobuf([{ spans: [ai] }]).length;
    for (let length = 1; length < whole.length; length++) {
      const { code, events } = converted(whole.subarray(0, length), "application/x-protobuf");
      if (length === half) expect(events).toHaveLength(1);
      else expect(code).toBe("invalid_payload");
    }
    const text = otlpJson([{ spans: [ai] }]);
    for (let length = 1; length < text.length; length++)
      expect(converted(text.slice(0, length), "application/json").code).toBe("invalid_payload");
  });

  test.each([
    '{"resourceSpans":[{]}',
    '{"resourceSpans":{}}',
    "[]",
    "1",
    "{} x",
    '{"a":1,}',
    '{"resourceSpans":[{"scopeSpans":[{"spans":[{]}]}]}',
  ])("is rejected if its JSON is malformed: %s", (text) => {
    const answer = converted(text, "application/json");
    expect([answer.code, answer.detail]).toEqual([
      "invalid_payload",
      expect.stringMatching(/JSON: /),
    ]);
  });

  test("becomes a batch or is rejected for any bytes", () => {
    const request = otlpProtobuf([
      { resource: { a: "b" }, spans: [ai, { ...ai, traceId, spanId }] },
    ]);
    const change = fc.tuple(fc.nat(request.length - 1), fc.nat(255));
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 4 }),
        fc.uint8Array({ maxLength: 64 }),
        (changes, bytes) => {
          const body = Buffer.from(request);
          for (const [at, byte] of changes) body[at] = byte;
          for (const each of [body, Buffer.from(bytes)])
            expect([undefined, "invalid_payload"]).toContain(
              converted(each, "application/x-protobuf").code,
            );
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("is rejected if its content type is unknown", () => {
    expect(converted("x", "text/plain").code).toBe("invalid_payload");
    expect(converted(otlpJson([{ spans: [ai] }]), "").events).toHaveLength(1);
    const type = "application/json; charset=utf-8";
    expect(converted(otlpJson([{ spans: [ai] }]), type).events).toHaveLength(1);
  });

  test("is rejected if it is too long or has too many spans", () => {
    for (const each of [json, protobuf]) {
      expect(each([{ spans: Array(1_000).fill(ai) as TestSpan[] }]).events).toHaveLength(1_000);
      expect(each([{ spans: Array(1_001).fill(ai) as TestSpan[] }]).code).toBe("too_many_events");
    }
    expect(converted(Buffer.alloc(4_194_305), "application/x-protobuf").code).toBe(
      "body_too_large",
    );
  });

  function nested(depth: number): string {
    return "[".repeat(depth) + "]".repeat(depth);
  }

  test("loses only a span that is too deep or too large", () => {
    let deep: Parameters<typeof eventOf>[0]["attributes"] = { "gen_ai.x": 1 };
    for (let depth = 0; depth < 200; depth++) deep = { a: deep };
    for (const [attributes, reason] of [
      [deep, "deep"],
      [{ "gen_ai.x": "x".repeat(1_048_577) }, "1048576 bytes"],
      [{ "gen_ai.input.messages": nested(30_000) }, "too deeply"],
    ] as const) {
      const spans = [ai, { attributes }, ai];
      const { events, answer } = json([{ spans }]);
      expect(events).toHaveLength(2);
      expect(answer).toMatchObject({
        rejectedSpans: "1",
        errorMessage: expect.stringContaining(reason),
      });
      expect(protobuf([{ spans }]).events).toHaveLength(2);
    }
  });

  test.each([
    ["values", { "gen_ai.x": Array(100_001).fill(1) as number[] }],
    [
      "attributes",
      Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`gen_ai.${at}`, 1])),
    ],
  ])("may have one span with many %s", (_title, attributes) => {
    expect(protobuf([{ spans: [ai, { attributes }] }]).events[1]!.properties).toMatchObject(
      attributes,
    );
  });

  test("may have a JSON text with any number of values", () => {
    const text = `[${"1,".repeat(100_000)}1]`;
    const { properties } = eventOf({ attributes: { "gen_ai.input.messages": text } });
    expect(properties["$ai_input"]).toHaveLength(100_001);
  });

  test("loses the spans of a resource that is too large", () => {
    let large: TestSpans["resource"] = { x: 1 };
    for (let depth = 0; depth < 100; depth++) large = { a: large };
    const groups = [{ resource: large, spans: [ai, ai] }, { spans: [ai] }];
    expect(json(groups)).toMatchObject({ answer: { rejectedSpans: "2" } });
    expect(protobuf(groups).events).toHaveLength(1);
    const resource = { text: "x".repeat(20_000) };
    const { events, answer } = json([{ resource, spans: Array(500).fill(ai) as TestSpan[] }]);
    expect(events.length).toBeGreaterThan(10);
    expect(Number(answer!.rejectedSpans)).toBe(500 - events.length);
    expect(answer!.errorMessage).toMatch(/over \d+ bytes/);
  });

  test("may have a resource after its spans", () => {
    const body = JSON.stringify({
      resource_spans: [
        {
          scope_spans: [{ spans: [{ attributes: [{ key: "gen_ai.x", value: { intValue: 1 } }] }] }],
          resource: { attributes: [{ key: "user.id", value: { stringValue: "u" } }] },
        },
      ],
    });
    expect(converted(body, "application/json").events[0]!.distinct_id).toBe("u");
  });

  test("may use any property name", () => {
    const { properties } = eventOf({
      attributes: { "gen_ai.x": 1, ["__proto__"]: "p", constructor: "c" },
    });
    expect(
      Object.hasOwn(properties, "__proto__") || JSON.stringify(properties).includes('"p"'),
    ).toBe(true);
    expect(properties["constructor"]).toBe("c");
  });
});
