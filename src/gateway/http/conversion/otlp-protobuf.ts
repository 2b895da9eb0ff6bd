// Reads the spans of an ExportTraceServiceRequest in protobuf, one at a time. After a malformed
// span it continues with the next one, which protobuf libraries do not. The field numbers are from
// OpenTelemetry's trace.proto, common.proto and resource.proto.

import type { Buffer } from "node:buffer";
import {
  type Attributes,
  checkDepth,
  integerOf,
  MalformedOtlpError,
  noAttributes,
  type OtlpSpan,
  orRejected,
  type ReadSpan,
  RejectedSpanError,
  type SpanEvent,
  spanBytesMax,
} from "./otlp.ts";

const WireType = {
  Varint: 0,
  Fixed64: 1,
  Bytes: 2,
  StartGroup: 3,
  EndGroup: 4,
  Fixed32: 5,
} as const;
const { Varint, Fixed64, Bytes } = WireType;

type Fields = Readonly<Record<number, number>>;

const requestFields: Fields = { 1: Bytes };
const resourceSpansFields: Fields = { 1: Bytes, 2: Bytes };
const resourceFields: Fields = { 1: Bytes };
const scopeSpansFields: Fields = { 1: Bytes, 2: Bytes };
const scopeFields: Fields = { 2: Bytes };
const spanFields: Fields = {
  1: Bytes,
  2: Bytes,
  4: Bytes,
  5: Bytes,
  7: Fixed64,
  8: Fixed64,
  9: Bytes,
  11: Bytes,
  15: Bytes,
};
const eventFields: Fields = { 2: Bytes, 3: Bytes };
const statusFields: Fields = { 2: Bytes, 3: Varint };
const keyValueFields: Fields = { 1: Bytes, 2: Bytes };
const valueFields: Fields = {
  1: Bytes,
  2: Varint,
  3: Varint,
  4: Fixed64,
  5: Bytes,
  6: Bytes,
  7: Bytes,
};
const listFields: Fields = { 1: Bytes };

const longVarint = "a varint has more than 10 bytes";

class Message {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  field = Number.NaN;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get length(): number {
    return this.#end - this.#at;
  }

  copy(): Message {
    return new Message(this.#bytes, this.#at, this.#end);
  }

  /**
   * Advances to the next known field. If it returns true, the caller must read the field's value.
   */
  next(known: Fields): boolean {
    while (this.#at !== this.#end) {
      const wireType = this.#key();
      if (known[this.field] === wireType) return true;
      this.#pass(wireType);
    }
    return false;
  }

  message(): Message {
    const start = this.#bytesField();
    return new Message(this.#bytes, start, this.#at);
  }

  text(): string {
    const start = this.#bytesField();
    return this.#bytes.toString("utf8", start, this.#at);
  }

  hex(): string {
    const start = this.#bytesField();
    return this.#bytes.toString("hex", start, this.#at);
  }

  fixed64(): bigint {
    this.#advance(8);
    return this.#bytes.readBigUInt64LE(this.#at - 8);
  }

  double(): number {
    this.#advance(8);
    return this.#bytes.readDoubleLE(this.#at - 8);
  }

  varint(): number | bigint {
    let [low, high] = [0, 0];
    for (let group = 0; group < 10; group++) {
      const byte = this.#byte();
      if (group < 7) low += (byte & 0x7f) * 2 ** (7 * group);
      else high += (byte & 0x7f) * 2 ** (7 * (group - 7));
      if (byte >= 0x80) continue;
      return group < 7 ? low : BigInt.asIntN(64, BigInt(low) + (BigInt(high) << 49n));
    }
    throw this.#malformed(longVarint);
  }

  #key(): number {
    const key = this.#smallVarint();
    this.field = key >>> 3;
    if (this.field === 0) throw this.#malformed("a field has the number 0");
    return key & 7;
  }

  #pass(wireType: number): void {
    let depth = 0;
    for (let type = wireType; ; type = this.#key()) {
      if (type === WireType.Varint) this.#passVarint();
      else if (type === WireType.Fixed64) this.#advance(8);
      else if (type === WireType.Bytes) this.#bytesField();
      else if (type === WireType.Fixed32) this.#advance(4);
      else if (type === WireType.StartGroup) depth++;
      else if (type === WireType.EndGroup && depth > 0) depth--;
      else throw this.#malformed(`a field has the wire type ${type}`);
      if (depth === 0) return;
    }
  }

  #passVarint(): void {
    for (let group = 0; group < 10; group++) if (this.#byte() < 0x80) return;
    throw this.#malformed(longVarint);
  }

  #bytesField(): number {
    const length = this.#smallVarint();
    const start = this.#at;
    this.#advance(length);
    return start;
  }

  #smallVarint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffff_ffff) break;
        return value;
      }
    }
    throw this.#malformed("a key or a length has more than 32 bits");
  }

  #byte(): number {
    if (this.#at >= this.#end) throw this.#malformed("a message ends within a field");
    return this.#bytes[this.#at++]!;
  }

  #advance(bytes: number): void {
    if (bytes > this.#end - this.#at)
      throw this.#malformed(`a field has ${bytes} bytes, and its message has ${this.length} left`);
    this.#at += bytes;
  }

  #malformed(what: string): MalformedOtlpError {
    return new MalformedOtlpError(`${what}, at byte ${this.#at}`);
  }
}

/** Yields the spans. Throws a MalformedOtlpError if the request is malformed. */
export function* protobufSpans(body: Buffer): Generator<ReadSpan, void> {
  const request = new Message(body);
  while (request.next(requestFields)) yield* spansOfResource(request.message());
}

function* spansOfResource(message: Message): Generator<ReadSpan, void> {
  const [resource = noAttributes(), problem] = fieldOne(
    message.copy(),
    resourceSpansFields,
    resourceOf,
  );
  const rejected = problem === "" ? "" : `the resource of the span is invalid: ${problem}`;
  yield* spansOfField(message, resourceSpansFields, (scope) =>
    spansOfScope(scope, resource, rejected),
  );
}

function* spansOfScope(
  message: Message,
  resource: Attributes,
  rejected: string,
): Generator<ReadSpan, void> {
  const [scopeVersion = ""] = fieldOne(message.copy(), scopeSpansFields, scopeVersionOf);
  yield* spansOfField(message, scopeSpansFields, function* (span): Generator<ReadSpan, void> {
    const read = rejected === "" ? orRejected(() => spanOf(span)) : { rejected };
    yield "rejected" in read ? read : { span: read.value, resource, scopeVersion };
  });
}

function fieldOne<T>(
  message: Message,
  fields: Fields,
  read: (part: Message) => T,
): readonly [T | undefined, string] {
  let value: T | undefined;
  let problem = "";
  orRejected(() => {
    while (message.next(fields)) {
      const part = message.message();
      if (message.field !== 1) continue;
      const found = orRejected(() => read(part));
      if ("rejected" in found) problem = found.rejected;
      else value = found.value;
    }
  });
  return [value, problem];
}

function* spansOfField(
  message: Message,
  fields: Fields,
  read: (part: Message) => Generator<ReadSpan, void>,
): Generator<ReadSpan, void> {
  for (;;) {
    const next = orRejected(() => (message.next(fields) ? message.message() : undefined));
    if ("rejected" in next) yield next;
    if ("rejected" in next || next.value === undefined) return;
    if (message.field === 2) yield* read(next.value);
  }
}

function resourceOf(message: Message): Attributes {
  if (message.length > spanBytesMax)
    throw new RejectedSpanError(`the resource has more than ${spanBytesMax} bytes`);
  const attributes = noAttributes();
  while (message.next(resourceFields)) readKeyValue(message.message(), attributes, 0);
  return attributes;
}

function scopeVersionOf(message: Message): string {
  let version = "";
  while (message.next(scopeFields)) version = message.text();
  return version;
}

function spanOf(message: Message): OtlpSpan {
  if (message.length > spanBytesMax)
    throw new RejectedSpanError(`the span has more than ${spanBytesMax} bytes`);
  const attributes = noAttributes();
  const valueless: string[] = [];
  const events: SpanEvent[] = [];
  let [traceId, spanId, parentSpanId, name] = ["", "", "", ""];
  let [startNs, endNs] = [0n, 0n];
  let status = { isError: false, statusMessage: "" };
  while (message.next(spanFields)) {
    const { field } = message;
    if (field === 1) traceId = message.hex();
    else if (field === 2) spanId = message.hex();
    else if (field === 4) parentSpanId = message.hex();
    else if (field === 5) name = message.text();
    else if (field === 7) startNs = message.fixed64();
    else if (field === 8) endNs = message.fixed64();
    else if (field === 9) {
      const key = readKeyValue(message.message(), attributes, 0);
      if (!(key in attributes)) valueless.push(key);
    } else if (field === 11) events.push(eventOf(message.message()));
    else if (field === 15) status = statusOf(message.message());
  }
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    startNs,
    endNs,
    attributes,
    valueless,
    events,
    ...status,
  };
}

function eventOf(message: Message): SpanEvent {
  const attributes = noAttributes();
  let name = "";
  while (message.next(eventFields)) {
    if (message.field === 2) name = message.text();
    else readKeyValue(message.message(), attributes, 0);
  }
  return { name, attributes };
}

function statusOf(message: Message): { isError: boolean; statusMessage: string } {
  let [isError, statusMessage] = [false, ""];
  while (message.next(statusFields)) {
    if (message.field === 2) statusMessage = message.text();
    else isError = message.varint() === 2;
  }
  return { isError, statusMessage };
}

function readKeyValue(message: Message, target: Attributes, depth: number): string {
  let key = "";
  let value: unknown;
  while (message.next(keyValueFields)) {
    if (message.field === 1) key = message.text();
    else value = anyValue(message.message(), depth);
  }
  if (value !== undefined) target[key] = value;
  return key;
}

function anyValue(message: Message, depth: number): unknown {
  checkDepth(depth);
  let value: unknown;
  while (message.next(valueFields)) {
    const { field } = message;
    if (field === 1) value = message.text();
    else if (field === 2) value = Number(message.varint()) !== 0;
    else if (field === 3) value = integerOf(message.varint());
    else if (field === 4) value = message.double();
    else if (field === 5) value = arrayOf(message.message(), depth + 1);
    else if (field === 6) value = mapOf(message.message(), depth + 1);
    else if (field === 7) value = message.hex();
  }
  return value;
}

function arrayOf(message: Message, depth: number): unknown[] {
  const values: unknown[] = [];
  while (message.next(listFields)) {
    const value = anyValue(message.message(), depth);
    if (value !== undefined) values.push(value);
  }
  return values;
}

function mapOf(message: Message, depth: number): Attributes {
  const values = noAttributes();
  while (message.next(listFields)) readKeyValue(message.message(), values, depth);
  return values;
}
