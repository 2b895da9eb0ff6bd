// Reads the spans of an ExportTraceServiceRequest in JSON, one after another. Goes through the
// levels above the spans byte by byte, and parses one span at a time: a request of 4 MiB is never
// parsed in one go. Names may be written in lowerCamelCase, as OTLP has them, or as in protobuf.

import { Buffer } from "node:buffer";
import { Ascii, isJsonSpace } from "../../../platform/base/ascii.ts";
import {
  type Attributes,
  exactlyParsed,
  MalformedOtlpError,
  noAttributes,
  type OtlpSpan,
  type ReadSpan,
  RejectedSpanError,
  type SpanEvent,
  spanBytesMax,
  ValueBudget,
} from "./otlp.ts";
import { parsedRepaired, textIn } from "./repaired-text.ts";

/** A position in a JSON text. Each value is to be taken by exactly one call. */
export class JsonCursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The names of an object's members. Whoever asks for the next has taken the value. */
  *members(): Generator<string, void> {
    this.#take(Ascii.OpenBrace, "an object");
    if (this.#takeIf(Ascii.CloseBrace)) return;
    do {
      const name = this.#parsed(this.#slice());
      if (typeof name !== "string") throw this.#malformed("a name is expected");
      this.#take(Ascii.Colon, "a colon");
      yield camelCased(name);
    } while (this.#takeIf(Ascii.Comma));
    this.#take(Ascii.CloseBrace, "a comma or the end of an object");
  }

  /** As often as an array has items. `null` counts as an empty array. */
  *items(): Generator<undefined, void> {
    if (this.#peek() !== Ascii.OpenBracket) {
      if (this.value() !== null) throw this.#malformed("an array is expected");
      return;
    }
    this.#at++;
    if (this.#takeIf(Ascii.CloseBracket)) return;
    do yield;
    while (this.#takeIf(Ascii.Comma));
    this.#take(Ascii.CloseBracket, "a comma or the end of an array");
  }

  /** The value at the position. A longer one is passed over, and throws a RejectedSpanError. */
  value(): unknown {
    return this.#parsed(this.#slice());
  }

  /** The text of the value at the position, as it stands in the bytes. */
  text(): Buffer {
    return this.#slice();
  }

  end(): void {
    if (this.#peek() !== undefined) throw this.#malformed("the text goes on behind the request");
  }

  #parsed(slice: Buffer): unknown {
    if (slice.length > spanBytesMax)
      throw new RejectedSpanError(`it has more than ${spanBytesMax} bytes`);
    try {
      return parsedRepaired(textIn(slice), exactlyParsed);
    } catch (error) {
      if (error instanceof RangeError)
        throw new RejectedSpanError("its values are nested too deeply");
      throw this.#malformed((error as Error).message);
    }
  }

  #slice(): Buffer {
    const first = this.#peek();
    const start = this.#at;
    if (first === Ascii.Quote) this.#passString();
    else if (first === Ascii.OpenBrace || first === Ascii.OpenBracket) this.#passContainer();
    else this.#passScalar();
    return this.#bytes.subarray(start, this.#at);
  }

  #passString(): void {
    for (this.#at++; this.#bytes[this.#at] !== Ascii.Quote; this.#at++) {
      if (this.#bytes[this.#at] === Ascii.Backslash) this.#at++;
      if (this.#at >= this.#bytes.length) throw this.#malformed("the text ends within a string");
    }
    this.#at++;
  }

  #passContainer(): void {
    let depth = 0;
    do {
      switch (this.#bytes[this.#at]) {
        case undefined:
          throw this.#malformed("the text ends within a value");
        case Ascii.Quote:
          this.#passString();
          continue;
        case Ascii.OpenBrace:
        case Ascii.OpenBracket:
          depth++;
          break;
        case Ascii.CloseBrace:
        case Ascii.CloseBracket:
          depth--;
          break;
      }
      this.#at++;
    } while (depth > 0);
  }

  #passScalar(): void {
    const start = this.#at;
    while (isOfScalar(this.#bytes[this.#at])) this.#at++;
    if (this.#at === start) throw this.#malformed("a value is expected");
  }

  #peek(): number | undefined {
    while (isJsonSpace(this.#bytes[this.#at])) this.#at++;
    return this.#bytes[this.#at];
  }

  #takeIf(byte: number): boolean {
    if (this.#peek() !== byte) return false;
    this.#at++;
    return true;
  }

  #take(byte: number, what: string): void {
    if (!this.#takeIf(byte)) throw this.#malformed(`${what} is expected`);
  }

  #malformed(what: string): MalformedOtlpError {
    return new MalformedOtlpError(`${what}, at byte ${this.#at}`);
  }
}

const letterOrSign = /[\w+.-]/;

function isOfScalar(byte: number | undefined): boolean {
  return byte !== undefined && byte < 0x80 && letterOrSign.test(String.fromCharCode(byte));
}

function camelCased(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Every span of the request, in order; undefined for one that waits for its resource. Throws a
 * MalformedOtlpError.
 */
export function* jsonSpans(body: Buffer): Generator<ReadSpan | undefined, void> {
  const cursor = new JsonCursor(body);
  for (const name of cursor.members()) {
    if (name !== "resourceSpans") cursor.value();
    else for (const _ of cursor.items()) yield* spansOfResource(cursor);
  }
  cursor.end();
}

/** A resource may stand behind its spans: then these are read, and wait for it. */
function* spansOfResource(cursor: JsonCursor): Generator<ReadSpan | undefined, void> {
  let resource: Attributes | undefined;
  let rejected = "";
  const waiting: ReadSpan[] = [];
  for (const name of cursor.members()) {
    if (name === "resource") {
      const read = orRejected(() => attributesOf(membersOf(cursor.value()), new ValueBudget()));
      if ("rejected" in read) rejected = `its resource: ${read.rejected}`;
      else resource = read.value;
    } else if (name === "scopeSpans" || name === "instrumentationLibrarySpans") {
      for (const _ of cursor.items())
        for (const read of spansOfScope(cursor)) {
          if (resource === undefined && rejected === "") {
            waiting.push(read);
            yield undefined;
          } else yield ofResource(read, resource ?? noAttributes(), rejected);
        }
    } else cursor.value();
  }
  for (const read of waiting) yield ofResource(read, resource ?? noAttributes(), rejected);
}

function ofResource(read: ReadSpan, resource: Attributes, rejected: string): ReadSpan {
  if (rejected !== "") return { rejected };
  return "rejected" in read ? read : { ...read, resource };
}

/** The version of a scope that stands behind its spans is not read. */
function* spansOfScope(cursor: JsonCursor): Generator<ReadSpan, void> {
  let scopeVersion = "";
  for (const name of cursor.members()) {
    if (name === "scope" || name === "instrumentationLibrary")
      scopeVersion = textOf(membersOf(cursor.value())["version"]);
    else if (name === "spans") {
      for (const _ of cursor.items()) {
        const read = orRejected(() => spanOf(membersOf(cursor.value())));
        const resource = noAttributes();
        yield "rejected" in read ? read : { span: read.value, resource, scopeVersion };
      }
    } else cursor.value();
  }
}

type Members = Record<string, unknown>;

/** The members of an object by their names in lowerCamelCase; none of anything else. */
function membersOf(value: unknown): Members {
  const members = Object.create(null) as Members;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return members;
  for (const [name, member] of Object.entries(value)) members[camelCased(name)] = member;
  return members;
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function spanOf(span: Members): OtlpSpan {
  const budget = new ValueBudget();
  const status = membersOf(span["status"]);
  const events = itemsOf(span["events"]).map((event): SpanEvent => {
    budget.take(0);
    const members = membersOf(event);
    return { name: textOf(members["name"]), attributes: attributesOf(members, budget) };
  });
  return {
    traceId: idOf(span["traceId"], 16),
    spanId: idOf(span["spanId"], 8),
    parentSpanId: idOf(span["parentSpanId"], 8),
    name: textOf(span["name"]),
    startNs: nanosecondsOf(span["startTimeUnixNano"]),
    endNs: nanosecondsOf(span["endTimeUnixNano"]),
    attributes: attributesOf(span, budget),
    events,
    isError: status["code"] === 2 || status["code"] === "STATUS_CODE_ERROR",
    statusMessage: textOf(status["message"]),
  };
}

/** OTLP writes ids in hexadecimal digits. Programs that follow protobuf alone write base64. */
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

function attributesOf(owner: Members, budget: ValueBudget): Attributes {
  const attributes = noAttributes();
  readKeyValues(owner["attributes"], attributes, budget, 0);
  return attributes;
}

function readKeyValues(
  pairs: unknown,
  target: Attributes,
  budget: ValueBudget,
  depth: number,
): void {
  for (const pair of itemsOf(pairs)) {
    const { key, value } = membersOf(pair);
    const read = anyValue(value, budget, depth);
    if (typeof key === "string" && read !== undefined) target[key] = read;
  }
}

/** Undefined for a value of no type. */
function anyValue(value: unknown, budget: ValueBudget, depth: number): unknown {
  budget.take(depth);
  const typed = membersOf(value);
  for (const [type, content] of Object.entries(typed)) {
    if (content === null) continue;
    switch (type) {
      case "stringValue":
        return typeof content === "string" ? content : undefined;
      case "boolValue":
        return typeof content === "boolean" ? content : undefined;
      case "intValue":
        return integerFrom(content);
      case "doubleValue":
        // The words for numbers that JSON does not have come as text.
        return typeof content === "number" ? content : Number(textOf(content));
      case "bytesValue":
        return Buffer.from(textOf(content), "base64").toString("hex");
      case "arrayValue":
        return itemsOf(membersOf(content)["values"])
          .map((item) => anyValue(item, budget, depth + 1))
          .filter((item) => item !== undefined);
      case "kvlistValue": {
        const map = noAttributes();
        readKeyValues(membersOf(content)["values"], map, budget, depth + 1);
        return map;
      }
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

function orRejected<T>(read: () => T): { readonly value: T } | { readonly rejected: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof RejectedSpanError) return { rejected: error.message };
    throw error;
  }
}
