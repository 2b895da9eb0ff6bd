// Converts spans to events with the names and properties that PostHog's products use. These begin
// with `$ai_`. Different instrumentations use different names for the same value, and all of these
// names are mapped to one property.

import { createHash } from "node:crypto";
import {
  type Attributes,
  exactlyParsed,
  isObject,
  noAttributes,
  type OtlpSpan,
  type SpanEvent,
} from "./otlp.ts";

interface AiEvent {
  readonly event: string;
  readonly distinct_id: string;
  readonly uuid: string;
  readonly timestamp?: string;
  readonly properties: Attributes;
}

export interface SpanParts {
  readonly span: OtlpSpan;
  readonly resource: Attributes;
  readonly scopeVersion: string;
  readonly requestId: string;
  readonly index: number;
}

const markers = [
  "gen_ai.",
  "ai.",
  "eve.",
  "llm.",
  "traceloop.",
  "pydantic_ai.",
  "openinference.",
  "langfuse.",
  "langwatch.",
  "anthropic.",
];
const machinePrefixes = ["host.", "process.", "os.", "telemetry."];

const spanIdKeys = [
  "ai.telemetry.metadata.posthog_distinct_id",
  "ai.settings.context.posthog_distinct_id",
  "posthog.distinct_id",
  "langfuse.user.id",
  "user.id",
];
const resourceIdKeys = ["posthog.distinct_id", "user.id"];
const sessionKeys = [
  "$ai_session_id",
  "ai.telemetry.metadata.$ai_session_id",
  "ai.settings.context.$ai_session_id",
  "eve.session.id",
  "anthropic.session.id",
  "langfuse.session.id",
  "session.id",
  "gen_ai.conversation.id",
];

/** The namespaces of derived ids (RFC 9562, section 5.5). PostHog uses the first one too. */
const distinctIdNamespace = "392e81d53d134a6fb541bdbf6c865e56";
const eventNamespace = "6ba7b8129dad11d180b400c04fd430c8";

export function isAiKey(key: string): boolean {
  return markers.some((marker) => key.startsWith(marker));
}

export function isAiSpan({ attributes }: OtlpSpan): boolean {
  for (const key in attributes) if (isAiKey(key)) return true;
  return false;
}

export function eventAttributesOf(resource: Attributes): Attributes {
  const attributes = noAttributes();
  for (const key in resource)
    if (!machinePrefixes.some((prefix) => key.startsWith(prefix))) attributes[key] = resource[key];
  return attributes;
}

export function aiEventOf(parts: SpanParts): AiEvent {
  const { span, resource, scopeVersion, requestId, index } = parts;
  const { attributes, traceId, spanId } = span;
  const properties = Object.assign(noAttributes(), resource, attributes);
  const kind = kindOf(attributes);
  const distinctId =
    firstText(attributes, spanIdKeys) ??
    firstText(resource, resourceIdKeys) ??
    derivedId(attributes, resource, traceId) ??
    uuidOf(distinctIdNamespace, `request:${requestId}`);
  properties["$geoip_disable"] ??= properties["posthog.geoip_disable"] ?? true;
  if (isId(traceId)) properties["$ai_trace_id"] = traceId;
  if (isId(spanId)) properties["$ai_span_id"] = spanId;
  if (isId(span.parentSpanId)) properties["$ai_parent_id"] = span.parentSpanId;
  else delete properties["$ai_parent_id"];
  properties["$ai_ingestion_source"] = "otel";
  properties["$lib"] ??= "posthog-otel";
  if (scopeVersion !== "") properties["$lib_version"] ??= scopeVersion;
  if (span.name !== "") properties["$ai_span_name"] ??= span.name;
  if (span.endNs > span.startNs)
    properties["$ai_latency"] = Number(span.endNs - span.startNs) / 1e9;
  if (span.isError) setError(span, properties);
  setFromEvents(span.events, properties);
  for (const [from, to] of conventionNames) move(properties, from, to);
  setFromLibraries(properties, kind);
  setMessages(properties);
  const session = firstText(attributes, sessionKeys) ?? firstText(resource, sessionKeys);
  if (session !== undefined) properties["$ai_session_id"] ??= session;
  const isTrace = kind === "$ai_span" && properties["$ai_parent_id"] === undefined;
  setStates(properties, kind);
  for (const key of mappedKeys) delete properties[key];
  const timestamp = timeOf(span.startNs);
  const id = isId(traceId) && isId(spanId) ? `${traceId}:${spanId}` : `${requestId}:${index}`;
  return {
    event: isTrace ? "$ai_trace" : kind,
    distinct_id: distinctId,
    uuid: uuidOf(eventNamespace, `otel:${id}`),
    ...(timestamp === undefined ? {} : { timestamp }),
    properties,
  };
}

function isId(hex: string): boolean {
  return /[^0]/.test(hex);
}

function timeOf(startNs: bigint): string | undefined {
  const ms = Number(startNs / 1_000_000n);
  return ms > 0 && ms <= 8.64e15 ? new Date(ms).toISOString() : undefined;
}

type SpanKind = "$ai_generation" | "$ai_embedding" | "$ai_span";

const kindsByAttribute: readonly (readonly [string, Readonly<Record<string, SpanKind>>])[] = [
  [
    "gen_ai.operation.name",
    {
      chat: "$ai_generation",
      text_completion: "$ai_generation",
      generate_content: "$ai_generation",
      embeddings: "$ai_embedding",
    },
  ],
  [
    "llm.request.type",
    {
      chat: "$ai_generation",
      completion: "$ai_generation",
      embedding: "$ai_embedding",
      embeddings: "$ai_embedding",
    },
  ],
  ["openinference.span.kind", { LLM: "$ai_generation", EMBEDDING: "$ai_embedding" }],
  ["langfuse.observation.type", { generation: "$ai_generation", embedding: "$ai_embedding" }],
];

function kindOf(attributes: Attributes): SpanKind {
  const vercel = attributes["ai.operationId"];
  if (typeof vercel === "string") {
    if (/\.do(?:Generate|Stream)$/.test(vercel)) return "$ai_generation";
    return /^ai\.embed(?:Many)?\.doEmbed$/.test(vercel) ? "$ai_embedding" : "$ai_span";
  }
  for (const [key, kinds] of kindsByAttribute) {
    const value = attributes[key];
    if (typeof value === "string" && Object.hasOwn(kinds, value)) return kinds[value]!;
  }
  return "$ai_span";
}

function firstText(attributes: Attributes, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = attributes[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

function derivedId(
  attributes: Attributes,
  resource: Attributes,
  traceId: string,
): string | undefined {
  for (const key of sessionKeys) {
    const session = firstText(attributes, [key]) ?? firstText(resource, [key]);
    if (session !== undefined) return uuidOf(distinctIdNamespace, `session:${session}`);
  }
  return isId(traceId) ? uuidOf(distinctIdNamespace, `trace:${traceId}`) : undefined;
}

function uuidOf(namespace: string, name: string): string {
  const hash = createHash("sha1").update(Buffer.from(namespace, "hex")).update(name).digest();
  hash[6] = (hash[6]! & 0x0f) | 0x50;
  hash[8] = (hash[8]! & 0x3f) | 0x80;
  return hash.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const httpStatusKeys = [
  "$ai_http_status",
  "http.response.status_code",
  "http.status_code",
  "http.status",
  "status_code",
  "error.status_code",
  "exception.status_code",
];

function setError({ events, statusMessage }: OtlpSpan, properties: Attributes): void {
  const exception = events.findLast(
    ({ name, attributes }) =>
      name === "exception" ||
      attributes["exception.message"] !== undefined ||
      attributes["exception.type"] !== undefined,
  )?.attributes;
  const type = firstText(exception ?? {}, ["exception.type"]);
  const message = firstText(exception ?? {}, ["exception.message"]);
  const texts = [type, message].filter((text) => text !== undefined).join(": ");
  properties["$ai_is_error"] = true;
  properties["$ai_error"] ??= texts || statusMessage || "OpenTelemetry span status error";
  properties["$ai_http_status"] ??=
    httpStatusIn(exception ?? {}) ??
    httpStatusInText(message ?? "") ??
    httpStatusIn(properties) ??
    httpStatusInText(statusMessage) ??
    500;
}

function httpStatusIn(attributes: Attributes): number | undefined {
  for (const key of httpStatusKeys) {
    const value = attributes[key];
    const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
    if (isHttpStatus(status)) return status;
  }
  return undefined;
}

function isHttpStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 599;
}

function httpStatusInText(text: string): number | undefined {
  const found = /(?:http|status).{0,40}?(?<!\d)(\d{3})(?!\d)/i.exec(text.slice(0, 2_000))?.[1];
  const status = Number(found);
  return isHttpStatus(status) ? status : undefined;
}

const inputRoles: Readonly<Record<string, string>> = {
  "gen_ai.system.message": "system",
  "gen_ai.user.message": "user",
  "gen_ai.assistant.message": "assistant",
  "gen_ai.tool.message": "tool",
};

function setFromEvents(events: readonly SpanEvent[], properties: Attributes): void {
  const messages: Attributes[] = [];
  for (const { name, attributes } of events) {
    if (name === "gen_ai.client.inference.operation.details")
      for (const key in attributes) properties[key] ??= attributes[key];
    else if (name in inputRoles || name === "gen_ai.choice")
      messages.push({ ...attributes, "event.name": name });
  }
  const written = parsed(properties["events"]);
  if (Array.isArray(written)) {
    messages.push(...written.filter(isObject));
    delete properties["events"];
  }
  const inputs: Attributes[] = [];
  const choices: Attributes[] = [];
  for (const message of messages) {
    const name = message["event.name"];
    if (name === "gen_ai.choice") {
      const inner = parsed(message["message"]);
      choices.push(isObject(inner) ? inner : messageOf(message, undefined));
    } else if (typeof name === "string" && Object.hasOwn(inputRoles, name))
      inputs.push(messageOf(message, inputRoles[name]));
  }
  if (inputs.length > 0) properties["gen_ai.input.messages"] ??= inputs;
  if (choices.length > 0) properties["gen_ai.output.messages"] ??= choices;
}

function messageOf(entry: Attributes, role: string | undefined): Attributes {
  const message = noAttributes();
  const ownRole = entry["role"] ?? role;
  if (ownRole !== undefined) message["role"] = ownRole;
  for (const key of ["content", "tool_calls", "tool_call_id"])
    if (entry[key] !== undefined) message[key] = entry[key];
  return message;
}

interface Library {
  readonly name: string;
  readonly prefixes: readonly string[];
  readonly set: (properties: Attributes, keys: readonly string[], kind: SpanKind) => void;
}

const libraries: readonly Library[] = [
  {
    name: "vercel-ai",
    prefixes: ["ai.operationId", "ai.telemetry.", "ai.usage."],
    set: setFromVercel,
  },
  {
    name: "openinference",
    prefixes: ["openinference.", "llm.input_messages.", "llm.token_count.", "llm.model_name"],
    set: setFromOpenInference,
  },
  { name: "langfuse", prefixes: ["langfuse."], set: setFromLangfuse },
  { name: "langwatch", prefixes: ["langwatch."], set: setFromLangwatch },
  {
    name: "pydantic-ai",
    prefixes: ["pydantic_ai.", "logfire.", "model_request_parameters"],
    set: setFromPydantic,
  },
  {
    name: "traceloop",
    prefixes: ["traceloop.", "llm.request.", "gen_ai.prompt.", "gen_ai.completion."],
    set: setFromTraceloop,
  },
  { name: "anthropic", prefixes: ["anthropic."], set: setFromAnthropic },
];
const prefixes = libraries.flatMap((library) =>
  library.prefixes.map((prefix) => [library, prefix] as const),
);

function setFromLibraries(properties: Attributes, kind: SpanKind): void {
  const keys = Object.keys(properties);
  const found = new Set<Library>();
  for (const key of keys)
    for (const [library, prefix] of prefixes) if (key.startsWith(prefix)) found.add(library);
  const used = libraries.filter((library) => found.has(library));
  for (const { set } of used) set(properties, keys, kind);
  if (used.length > 0) properties["$ai_lib"] ??= `opentelemetry/${used[0]!.name}`;
}

function move(properties: Attributes, from: string, to: string, read = (value: unknown) => value) {
  const value = properties[from];
  if (value === undefined) return;
  delete properties[from];
  properties[to] ??= read(value);
}

function setFromVercel(properties: Attributes, keys: readonly string[]): void {
  move(properties, "ai.prompt.messages", "gen_ai.input.messages");
  const prompt = parsed(properties["ai.prompt"]);
  if (typeof prompt === "string")
    properties["gen_ai.input.messages"] ??= [{ role: "user", content: prompt }];
  else if (Array.isArray(prompt)) properties["gen_ai.input.messages"] ??= prompt;
  else if (isObject(prompt))
    properties["gen_ai.input.messages"] ??= prompt["messages"] ?? [
      { role: "user", content: prompt["prompt"] ?? prompt },
    ];
  delete properties["ai.prompt"];
  const text = properties["ai.response.text"];
  const calls = parsed(properties["ai.response.toolCalls"]);
  if (text !== undefined || calls !== undefined || properties["ai.response.object"] !== undefined) {
    const message: Attributes = {
      role: "assistant",
      content: text ?? parsed(properties["ai.response.object"]) ?? "",
    };
    if (calls !== undefined) message["tool_calls"] = calls;
    properties["gen_ai.output.messages"] ??= [message];
  }
  for (const key of ["ai.response.text", "ai.response.toolCalls", "ai.response.object"])
    delete properties[key];
  move(properties, "ai.value", "$ai_input", (value) => parsed(value));
  move(properties, "ai.values", "$ai_input", (values) =>
    Array.isArray(values) ? values.map(parsed) : parsed(values),
  );
  for (const name of ["ai.response.model", "ai.model.id"]) move(properties, name, "$ai_model");
  move(properties, "ai.model.provider", "$ai_provider");
  for (const name of ["ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"])
    move(properties, name, "$ai_input_tokens");
  for (const name of ["ai.usage.outputTokens", "ai.usage.completionTokens"])
    move(properties, name, "$ai_output_tokens");
  move(properties, "ai.usage.cachedInputTokens", "$ai_cache_read_input_tokens");
  move(properties, "ai.usage.reasoningTokens", "$ai_reasoning_tokens");
  move(properties, "ai.response.finishReason", "$ai_stop_reason");
  move(properties, "ai.prompt.tools", "$ai_tools", (tools) =>
    Array.isArray(tools) ? tools.map(parsed) : parsed(tools),
  );
  move(properties, "ai.toolCall.args", "$ai_input_state", parsed);
  move(properties, "ai.toolCall.result", "$ai_output_state", parsed);
  if (properties["ai.toolCall.name"] !== undefined) {
    properties["$ai_span_name"] = properties["ai.toolCall.name"];
    delete properties["ai.toolCall.name"];
  }
  move(properties, "ai.telemetry.functionId", "functionId");
  for (const key of keys) {
    const name = /^ai\.(?:telemetry\.metadata|settings\.context)\.(.+)$/.exec(key)?.[1];
    if (name === undefined) continue;
    if (name.startsWith("$ai_") || name === "posthog_distinct_id") move(properties, key, name);
    else delete properties[key];
  }
}

const openInferenceNames: readonly (readonly [string, string])[] = [
  ["llm.model_name", "$ai_model"],
  ["embedding.model_name", "$ai_model"],
  ["llm.provider", "$ai_provider"],
  ["llm.system", "$ai_provider"],
  ["llm.token_count.prompt", "$ai_input_tokens"],
  ["llm.token_count.completion", "$ai_output_tokens"],
  ["llm.token_count.prompt_details.cache_read", "$ai_cache_read_input_tokens"],
  ["llm.token_count.prompt_details.cache_write", "$ai_cache_creation_input_tokens"],
  ["llm.token_count.completion_details.reasoning", "$ai_reasoning_tokens"],
  ["llm.finish_reason", "$ai_stop_reason"],
];

function setFromOpenInference(
  properties: Attributes,
  keys: readonly string[],
  kind: SpanKind,
): void {
  for (const [from, to] of openInferenceNames) move(properties, from, to);
  move(properties, "llm.invocation_parameters", "$ai_model_parameters", parsed);
  setIndexed(properties, keys, "llm.input_messages.", "$ai_input", openInferenceMessage);
  setIndexed(properties, keys, "llm.output_messages.", "$ai_output_choices", openInferenceMessage);
  setIndexed(properties, keys, "llm.tools.", "$ai_tools", (tool) =>
    parsed(tool["tool.json_schema"]),
  );
  const [input, output] = [properties["input.value"], properties["output.value"]];
  delete properties["input.value"];
  delete properties["output.value"];
  if (kind === "$ai_span") {
    if (input !== undefined) properties["$ai_input_state"] ??= parsed(input);
    if (output !== undefined) properties["$ai_output_state"] ??= parsed(output);
    return;
  }
  if (input !== undefined) properties["$ai_input"] ??= [{ role: "user", content: input }];
  if (output !== undefined && kind === "$ai_generation")
    properties["$ai_output_choices"] ??= [{ role: "assistant", content: output }];
}

function openInferenceMessage(entry: Attributes): Attributes {
  const message = noAttributes();
  for (const key of ["role", "content", "tool_call_id", "name"])
    if (entry[`message.${key}`] !== undefined) message[key] = entry[`message.${key}`];
  const calls = indexed(entry, Object.keys(entry), "message.tool_calls.");
  if (calls.length > 0)
    message["tool_calls"] = calls.map((call) => ({
      id: call["tool_call.id"],
      type: "function",
      function: {
        name: call["tool_call.function.name"],
        arguments: call["tool_call.function.arguments"],
      },
    }));
  return message;
}

function setFromLangfuse(properties: Attributes, _keys: readonly string[], kind: SpanKind): void {
  const own = "langfuse.observation.";
  move(properties, `${own}model.name`, "$ai_model");
  move(properties, `${own}model.parameters`, "$ai_model_parameters", parsed);
  const usage = parsed(properties[`${own}usage_details`]);
  if (isObject(usage)) {
    const tokens = (name: string, ...from: readonly string[]) => {
      const found = from.map((key) => usage[key]).find((value) => value !== undefined);
      if (found !== undefined) properties[name] ??= found;
    };
    tokens("$ai_input_tokens", "input", "prompt_tokens", "input_tokens");
    tokens("$ai_output_tokens", "output", "completion_tokens", "output_tokens");
    tokens("$ai_cache_read_input_tokens", "cache_read_input_tokens", "input_cached_tokens");
    delete properties[`${own}usage_details`];
  }
  const [input, output] =
    kind === "$ai_span"
      ? ["$ai_input_state", "$ai_output_state"]
      : ["$ai_input", "$ai_output_choices"];
  const asMessages = (role: string) => (value: unknown) => {
    const content = parsed(value);
    if (kind === "$ai_span" || Array.isArray(content)) return content;
    return [isObject(content) && "role" in content ? content : { role, content }];
  };
  for (const scope of [own, "langfuse.trace."]) {
    move(properties, `${scope}input`, input!, asMessages("user"));
    move(properties, `${scope}output`, output!, asMessages("assistant"));
  }
}

function setFromLangwatch(properties: Attributes): void {
  const content = (name: string): unknown => {
    const wrapped = parsed(properties[name]);
    delete properties[name];
    return isObject(wrapped) && "value" in wrapped ? wrapped["value"] : undefined;
  };
  const input = content("langwatch.input");
  if (Array.isArray(input)) properties["$ai_input"] ??= input;
  else if (input !== undefined) properties["$ai_input"] ??= [{ role: "user", content: input }];
  const output = content("langwatch.output");
  const choices = isObject(output) && Array.isArray(output["choices"]) ? output["choices"] : [];
  if (choices.length > 0)
    properties["$ai_output_choices"] ??= choices
      .filter(isObject)
      .map((choice) => (isObject(choice["message"]) ? choice["message"] : choice));
  else if (output !== undefined)
    properties["$ai_output_choices"] ??= [{ role: "assistant", content: output }];
  move(properties, "langwatch.instructions", "gen_ai.system_instructions");
}

function setFromPydantic(properties: Attributes, _keys: readonly string[], kind: SpanKind): void {
  move(properties, "logfire.msg", "$ai_span_name");
  const all = parsed(properties["pydantic_ai.all_messages"]);
  if (Array.isArray(all)) {
    const messages = all.filter(isObject);
    const asked = messages.find(({ role }) => role === "user");
    const answered = messages.findLast(({ role }) => role !== "user" && role !== "system");
    if (asked !== undefined) properties["$ai_input_state"] ??= asked;
    const result = parsed(properties["final_result"]) ?? answered;
    if (result !== undefined) properties["$ai_output_state"] ??= result;
    const agent = properties["gen_ai.agent.name"] ?? properties["agent_name"];
    if (agent !== undefined) properties["$ai_span_name"] = agent;
    for (const key of ["pydantic_ai.all_messages", "final_result", "agent_name"])
      delete properties[key];
  }
  move(properties, "model_name", "$ai_model");
  if (kind === "$ai_span") {
    move(properties, "tool_arguments", "$ai_input_state", parsed);
    move(properties, "tool_response", "$ai_output_state", parsed);
  }
  for (const key of ["logfire.json_schema", "model_request_parameters"]) delete properties[key];
}

function setFromTraceloop(properties: Attributes, keys: readonly string[], kind: SpanKind): void {
  const message = (entry: Attributes): Attributes => {
    const calls = indexed(entry, Object.keys(entry), "tool_calls.");
    const plain = messageOf(entry, undefined);
    if (calls.length > 0) plain["tool_calls"] = calls;
    if (entry["finish_reason"] !== undefined) plain["finish_reason"] = entry["finish_reason"];
    return plain;
  };
  setIndexed(properties, keys, "gen_ai.prompt.", "$ai_input", message);
  setIndexed(properties, keys, "gen_ai.completion.", "$ai_output_choices", message);
  setIndexed(properties, keys, "llm.request.functions.", "$ai_tools", (tool) => tool);
  for (const key of ["llm.response.finish_reason", "llm.response.stop_reason"])
    move(properties, key, "$ai_stop_reason");
  if (kind === "$ai_span") {
    move(properties, "traceloop.entity.input", "$ai_input_state", parsed);
    move(properties, "traceloop.entity.output", "$ai_output_state", parsed);
    if (properties["traceloop.entity.name"] !== undefined)
      properties["$ai_span_name"] = properties["traceloop.entity.name"];
  }
}

const anthropicNames: readonly (readonly [string, string])[] = [
  ["gen_ai.usage.cache_write.input_tokens", "$ai_cache_creation_input_tokens"],
  ["gen_ai.usage.reasoning.output_tokens", "$ai_reasoning_tokens"],
  ["gen_ai.request.max_tokens", "$ai_max_tokens"],
  ["gen_ai.request.stream", "$ai_stream"],
  ["anthropic.message.stop_reason", "$ai_stop_reason"],
  ["anthropic.session.turn.stop_reason", "$ai_stop_reason"],
];

function setFromAnthropic(properties: Attributes): void {
  for (const [from, to] of anthropicNames) move(properties, from, to);
  move(properties, "gen_ai.tool.call.arguments", "$ai_input_state", parsed);
  move(properties, "anthropic.tool_result.content", "$ai_output_state", parsed);
}

const conventionNames: readonly (readonly [string, string])[] = [
  ["gen_ai.usage.input_tokens", "$ai_input_tokens"],
  ["gen_ai.usage.prompt_tokens", "$ai_input_tokens"],
  ["gen_ai.usage.output_tokens", "$ai_output_tokens"],
  ["gen_ai.usage.completion_tokens", "$ai_output_tokens"],
  ["gen_ai.usage.cache_read.input_tokens", "$ai_cache_read_input_tokens"],
  ["gen_ai.usage.cache_creation.input_tokens", "$ai_cache_creation_input_tokens"],
  ["gen_ai.response.model", "$ai_model"],
  ["gen_ai.request.model", "$ai_model"],
  ["gen_ai.provider.name", "$ai_provider"],
  ["gen_ai.system", "$ai_provider"],
  ["server.address", "$ai_base_url"],
];

function setMessages(properties: Attributes): void {
  move(properties, "gen_ai.input.messages", "$ai_input", parsed);
  move(properties, "gen_ai.output.messages", "$ai_output_choices", parsed);
  move(properties, "gen_ai.tool.definitions", "$ai_tools", parsed);
  const instructions = systemText(parsed(properties["gen_ai.system_instructions"]));
  delete properties["gen_ai.system_instructions"];
  const input = properties["$ai_input"];
  const system = { role: "system", content: instructions };
  if (instructions !== "" && input === undefined) properties["$ai_input"] = [system];
  else if (instructions !== "" && Array.isArray(input) && !isSystem(input[0]))
    properties["$ai_input"] = [system, ...(input as unknown[])];
  const reasons = parsed(properties["gen_ai.response.finish_reasons"]);
  const choices = properties["$ai_output_choices"];
  const reason = Array.isArray(reasons)
    ? (reasons[0] as unknown)
    : Array.isArray(choices)
      ? choices
          .filter(isObject)
          .map((choice) => choice["finish_reason"])
          .find((text) => text)
      : undefined;
  if (typeof reason === "string" && reason !== "") properties["$ai_stop_reason"] ??= reason;
  delete properties["gen_ai.response.finish_reasons"];
}

function systemText(instructions: unknown): string {
  if (typeof instructions === "string") return instructions;
  if (!Array.isArray(instructions)) return instructions ? JSON.stringify(instructions) : "";
  return instructions
    .filter(isObject)
    .map(({ type, content }) => (type === "text" && typeof content === "string" ? content : ""))
    .filter((text) => text !== "")
    .join("\n\n");
}

function isSystem(message: unknown): boolean {
  return isObject(message) && message["role"] === "system";
}

function setStates(properties: Attributes, kind: SpanKind): void {
  if (kind !== "$ai_span") return;
  const tool = properties["gen_ai.tool.name"];
  if (tool !== undefined) properties["$ai_span_name"] = tool;
  move(properties, "gen_ai.tool.call.arguments", "$ai_input_state", parsed);
  move(properties, "gen_ai.tool.call.result", "$ai_output_state", parsed);
  const [input, output] = [properties["$ai_input"], properties["$ai_output_choices"]];
  if (Array.isArray(input)) {
    const asked: unknown = input.find((one) => isObject(one) && one["role"] === "user");
    if (asked !== undefined) properties["$ai_input_state"] ??= asked;
  }
  if (Array.isArray(output) && output.length > 0)
    properties["$ai_output_state"] ??= output.at(-1) as unknown;
}

const mappedKeys = [
  "gen_ai.operation.name",
  "llm.request.type",
  "ai.operationId",
  "posthog.ai.debug",
  "posthog.distinct_id",
  "posthog.geoip_disable",
  "user.id",
  "langfuse.user.id",
  "openinference.span.kind",
  "langfuse.observation.type",
  "input.mime_type",
  "output.mime_type",
  "llm.token_count.total",
  "traceloop.span.kind",
  "anthropic.session.id",
  "langfuse.session.id",
  "ai.telemetry.functionId",
];

function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{"]/.test(value)) return value;
  try {
    return exactlyParsed(value);
  } catch {
    return value;
  }
}

/** Collects the properties `prefix.0.name`, `prefix.1.name` etc. into one object per index. */
function indexed(properties: Attributes, keys: readonly string[], prefix: string): Attributes[] {
  const entries = new Map<number, Attributes>();
  for (const key of keys) {
    const value = key.startsWith(prefix) ? properties[key] : undefined;
    if (value === undefined) continue;
    const dot = key.indexOf(".", prefix.length);
    const digits = key.slice(prefix.length, dot);
    if (dot < 0 || dot + 1 === key.length || !/^\d{1,6}$/.test(digits)) continue;
    const index = Number(digits);
    let entry = entries.get(index);
    if (entry === undefined) {
      entry = noAttributes();
      entries.set(index, entry);
    }
    entry[key.slice(dot + 1)] = value;
  }
  return [...entries].sort(([one], [other]) => one - other).map(([, entry]) => entry);
}

function setIndexed(
  properties: Attributes,
  keys: readonly string[],
  prefix: string,
  target: string,
  read: (entry: Attributes) => unknown,
): void {
  const entries = indexed(properties, keys, prefix);
  if (entries.length === 0) return;
  for (const key of keys) if (key.startsWith(prefix)) delete properties[key];
  properties[target] ??= entries.map(read);
}
