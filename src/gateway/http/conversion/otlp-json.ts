// Reads the spans of an ExportTraceServiceRequest in JSON, one at a time. It accepts the names of
// OTLP (`traceId`) and the names of protobuf (`trace_id`).

import { Buffer } from "node:buffer";
import { Ascii } from "../../../platform/base/ascii.ts";
import { camelCased, JsonCursor } from "./json-cursor.ts";
import {
  type Attributes,
  checkDepth,
  isObject,
  noAttributes,
  type OtlpSpan,
  orRejected,
  type ReadSpan,
  RejectedSpanError,
  type SpanEvent,
  spansMax,
} from "./otlp.ts";

/** Yields the spans. Throws a MalformedOtlpError if the request is malformed. */
export function* jsonSpans(body: Buffer): Generator<ReadSpan, void> {
  const cursor = new JsonCursor(body);
  for (const name of cursor.members()) {
    if (name === "resourceSpans") for (const _ of cursor.items()) yield* spansOfResource(cursor);
    else cursor.text();
  }
  cursor.end();
}

function* spansOfItems(
  cursor: JsonCursor,
  name: string,
  read: () => Generator<ReadSpan, void>,
): Generator<ReadSpan, void> {
  if (cursor.isAt(Ascii.OpenBracket)) for (const _ of cursor.items()) yield* read();
  else if (cursor.text().toString() !== "null") yield { rejected: `${name} is not an array` };
}

function* spansOfResource(cursor: JsonCursor): Generator<ReadSpan, void> {
  let resource: Attributes | undefined;
  let rejected = "";
  const waiting: ReadSpan[] = [];
  for (const name of membersAt(cursor)) {
    if (name === "resource") {
      const read = orRejected(() => attributesOf(cursor.value()));
      if ("rejected" in read) rejected = `its resource: ${read.rejected}`;
      else resource = read.value;
    } else if (name === "scopeSpans" || name === "instrumentationLibrarySpans") {
      for (const read of spansOfItems(cursor, name, () => spansOfScope(cursor))) {
        if (resource === undefined && rejected === "" && waiting.length <= spansMax)
          waiting.push(read);
        else yield ofResource(read, resource ?? noAttributes(), rejected);
      }
    } else cursor.text();
  }
  for (const read of waiting) yield ofResource(read, resource ?? noAttributes(), rejected);
}

function membersAt(cursor: JsonCursor): Iterable<string> {
  if (cursor.isAt(Ascii.OpenBrace)) return cursor.members();
  cursor.text();
  return [];
}

function ofResource(read: ReadSpan, resource: Attributes, rejected: string): ReadSpan {
  if (rejected !== "") return { rejected };
  return "rejected" in read ? read : { ...read, resource };
}

function* spansOfScope(cursor: JsonCursor): Generator<ReadSpan, void> {
  let scopeVersion = "";
  for (const name of membersAt(cursor)) {
    if (name === "scope" || name === "instrumentationLibrary") {
      const read = orRejected(() => textOf(memberOf(cursor.value(), "version")));
      if ("value" in read) scopeVersion = read.value;
    } else if (name === "spans") {
      yield* spansOfItems(cursor, name, function* (): Generator<ReadSpan, void> {
        const read = orRejected(() => spanOf(cursor.value()));
        const resource = noAttributes();
        yield "rejected" in read ? read : { span: read.value, resource, scopeVersion };
      });
    } else cursor.text();
  }
}

function memberOf(value: unknown, name: string, protobufName = name): unknown {
  return isObject(value) ? (value[name] ?? value[protobufName]) : undefined;
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function spanOf(span: unknown): OtlpSpan {
  if (!isObject(span)) throw new RejectedSpanError("it is not an object");
  const attributes = attributesOf(span);
  const status = memberOf(span, "status");
  const code = memberOf(status, "code");
  const events = itemsOf(memberOf(span, "events")).map(
    (event): SpanEvent => ({
      name: textOf(memberOf(event, "name")),
      attributes: attributesOf(event),
    }),
  );
  return {
    traceId: idOf(memberOf(span, "traceId", "trace_id"), 16),
    spanId: idOf(memberOf(span, "spanId", "span_id"), 8),
    parentSpanId: idOf(memberOf(span, "parentSpanId", "parent_span_id"), 8),
    name: textOf(memberOf(span, "name")),
    startNs: nanosecondsOf(memberOf(span, "startTimeUnixNano", "start_time_unix_nano")),
    endNs: nanosecondsOf(memberOf(span, "endTimeUnixNano", "end_time_unix_nano")),
    attributes,
    valueless: itemsOf(memberOf(span, "attributes"))
      .map((pair) => textOf(memberOf(pair, "key")))
      .filter((key) => !(key in attributes)),
    events,
    isError: code === 2 || code === "STATUS_CODE_ERROR",
    statusMessage: textOf(memberOf(status, "message")),
  };
}

function idOf(value: unknown, bytes: number): string {
  const text = textOf(value);
  if (/^(?:[\da-f]{2})*$/i.test(text)) return text.toLowerCase();
  const decoded = Buffer.from(text, "base64");
  return decoded.length === bytes ? decoded.toString("hex") : "";
}

function nanosecondsOf(value: unknown): bigint {
  const text = typeof value === "number" ? value.toFixed(0) : textOf(value);
  return /^\d{1,20}$/.test(text) ? BigInt(text) : 0n;
}

function attributesOf(owner: unknown): Attributes {
  return mapOf(memberOf(owner, "attributes"), 0);
}

function mapOf(pairs: unknown, depth: number): Attributes {
  const map = noAttributes();
  for (const pair of itemsOf(pairs)) {
    const key = memberOf(pair, "key");
    const read = anyValue(memberOf(pair, "value"), depth);
    if (typeof key === "string" && read !== undefined) map[key] = read;
  }
  return map;
}

function anyValue(value: unknown, depth: number): unknown {
  checkDepth(depth);
  if (!isObject(value)) return undefined;
  for (const [type, content] of Object.entries(value)) {
    if (content === null) continue;
    switch (camelCased(type)) {
      case "stringValue":
        return typeof content === "string" ? content : undefined;
      case "boolValue":
        return typeof content === "boolean" ? content : undefined;
      case "intValue":
        return integerFrom(content);
      case "doubleValue":
        return typeof content === "number" ? content : Number(textOf(content));
      case "bytesValue":
        return Buffer.from(textOf(content), "base64").toString("hex");
      case "arrayValue":
        return itemsOf(memberOf(content, "values"))
          .map((item) => anyValue(item, depth + 1))
          .filter((item) => item !== undefined);
      case "kvlistValue":
        return mapOf(memberOf(content, "values"), depth + 1);
    }
  }
  return undefined;
}

function integerFrom(content: unknown): number | string | undefined {
  if (typeof content === "number") return content;
  const text = textOf(content);
  if (!/^-?\d{1,19}$/.test(text)) return undefined;
  return Number.isSafeInteger(Number(text)) ? Number(text) : text;
}
