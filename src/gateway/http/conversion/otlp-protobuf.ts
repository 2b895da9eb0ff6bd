// Reads the spans of an ExportTraceServiceRequest in protobuf, one after another. This is own code:
// it reads eleven kinds of messages, decodes a span only when it is asked for, and bounds what one
// span may make of its bytes, which the protobuf libraries do not. The field numbers are those of
// opentelemetry/proto/trace/v1/trace.proto, common.proto and resource.proto.

import type { Buffer } from "node:buffer";
import {
  type Attributes,
  integerOf,
  MalformedOtlpError,
  noAttributes,
  type OtlpSpan,
  type ReadSpan,
  RejectedSpanError,
  type SpanEvent,
  spanBytesMax,
  ValueBudget,
} from "./otlp.ts";

const WireType = { Varint: 0, Fixed64: 1, Bytes: 2, Fixed32: 5 } as const;

/** A message within the bytes, and a position in it. */
class Message {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  /** The field at the position. */
  field = 0;
  #wireType: number = WireType.Varint;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get length(): number {
    return this.#end - this.#at;
  }

  /** Goes to the next field; false at the end. */
  next(): boolean {
    if (this.#at === this.#end) return false;
    const key = this.#smallVarint();
    this.field = key >>> 3;
    this.#wireType = key & 7;
    if (this.field === 0) throw this.#malformed("a field has the number 0");
    return true;
  }

  skip(): void {
    switch (this.#wireType) {
      case WireType.Varint:
        this.varint();
        return;
      case WireType.Fixed64:
        this.#advance(8);
        return;
      case WireType.Bytes:
        this.#bytesField();
        return;
      case WireType.Fixed32:
        this.#advance(4);
        return;
      default:
        throw this.#malformed(`a field has the wire type ${this.#wireType}`);
    }
  }

  message(): Message {
    const [start, end] = this.#bytesField();
    return new Message(this.#bytes, start, end);
  }

  text(): string {
    const [start, end] = this.#bytesField();
    return this.#bytes.toString("utf8", start, end);
  }

  hex(): string {
    const [start, end] = this.#bytesField();
    return this.#bytes.toString("hex", start, end);
  }

  fixed64(): bigint {
    this.#expect(WireType.Fixed64);
    const start = this.#at;
    this.#advance(8);
    return this.#bytes.readBigUInt64LE(start);
  }

  double(): number {
    this.#expect(WireType.Fixed64);
    const start = this.#at;
    this.#advance(8);
    return this.#bytes.readDoubleLE(start);
  }

  /** A signed integer of 64 bits. */
  varint(): bigint {
    this.#expect(WireType.Varint);
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw this.#malformed("a varint has more than 10 bytes");
  }

  #bytesField(): readonly [start: number, end: number] {
    this.#expect(WireType.Bytes);
    const length = this.#smallVarint();
    const start = this.#at;
    this.#advance(length);
    return [start, this.#at];
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

  #expect(wireType: number): void {
    if (this.#wireType !== wireType)
      throw this.#malformed(`field ${this.field} has the wire type ${this.#wireType}`);
  }

  #malformed(what: string): MalformedOtlpError {
    return new MalformedOtlpError(`${what}, at byte ${this.#at}`);
  }
}

/** Every span of the request, in order. Throws a MalformedOtlpError. */
export function* protobufSpans(body: Buffer): Generator<ReadSpan, void> {
  const request = new Message(body, 0, body.length);
  while (request.next()) {
    if (request.field === 1) yield* spansOfResource(request.message());
    else request.skip();
  }
}

function* spansOfResource(message: Message): Generator<ReadSpan, void> {
  // A resource may stand behind its spans.
  const scopes: Message[] = [];
  let resource = noAttributes();
  let rejected = "";
  while (message.next()) {
    if (message.field === 1) {
      const read = orRejected(() => resourceOf(message.message()));
      if ("rejected" in read) rejected = `its resource: ${read.rejected}`;
      else resource = read.value;
    } else if (message.field === 2) scopes.push(message.message());
    else message.skip();
  }
  for (const scope of scopes) yield* spansOfScope(scope, resource, rejected);
}

function resourceOf(message: Message): Attributes {
  const attributes = noAttributes();
  const budget = new ValueBudget();
  while (message.next()) {
    if (message.field === 1) readKeyValue(message.message(), attributes, budget, 0);
    else message.skip();
  }
  return attributes;
}

function* spansOfScope(
  message: Message,
  resource: Attributes,
  rejected: string,
): Generator<ReadSpan, void> {
  const spans: Message[] = [];
  let scopeVersion = "";
  while (message.next()) {
    if (message.field === 1) scopeVersion = scopeVersionOf(message.message());
    else if (message.field === 2) spans.push(message.message());
    else message.skip();
  }
  for (const one of spans) {
    if (rejected !== "") {
      yield { rejected };
      continue;
    }
    const read = orRejected(() => spanOf(one));
    yield "rejected" in read ? read : { span: read.value, resource, scopeVersion };
  }
}

function scopeVersionOf(message: Message): string {
  let version = "";
  while (message.next()) {
    if (message.field === 2) version = message.text();
    else message.skip();
  }
  return version;
}

function spanOf(message: Message): OtlpSpan {
  if (message.length > spanBytesMax)
    throw new RejectedSpanError(`it has more than ${spanBytesMax} bytes`);
  const budget = new ValueBudget();
  const attributes = noAttributes();
  const events: SpanEvent[] = [];
  let [traceId, spanId, parentSpanId, name] = ["", "", "", ""];
  let [startNs, endNs] = [0n, 0n];
  let status = { isError: false, statusMessage: "" };
  while (message.next()) {
    switch (message.field) {
      case 1:
        traceId = message.hex();
        break;
      case 2:
        spanId = message.hex();
        break;
      case 4:
        parentSpanId = message.hex();
        break;
      case 5:
        name = message.text();
        break;
      case 7:
        startNs = message.fixed64();
        break;
      case 8:
        endNs = message.fixed64();
        break;
      case 9:
        readKeyValue(message.message(), attributes, budget, 0);
        break;
      case 11:
        events.push(eventOf(message.message(), budget));
        break;
      case 15:
        status = statusOf(message.message());
        break;
      default:
        message.skip();
    }
  }
  return { traceId, spanId, parentSpanId, name, startNs, endNs, attributes, events, ...status };
}

function eventOf(message: Message, budget: ValueBudget): SpanEvent {
  budget.take(0);
  const attributes = noAttributes();
  let name = "";
  while (message.next()) {
    if (message.field === 2) name = message.text();
    else if (message.field === 3) readKeyValue(message.message(), attributes, budget, 0);
    else message.skip();
  }
  return { name, attributes };
}

function statusOf(message: Message): { isError: boolean; statusMessage: string } {
  let [isError, statusMessage] = [false, ""];
  while (message.next()) {
    if (message.field === 2) statusMessage = message.text();
    else if (message.field === 3) isError = message.varint() === 2n;
    else message.skip();
  }
  return { isError, statusMessage };
}

/** A pair without a value is left out, as a value of no type is. */
function readKeyValue(
  message: Message,
  target: Attributes,
  budget: ValueBudget,
  depth: number,
): void {
  let key = "";
  let value: unknown;
  while (message.next()) {
    if (message.field === 1) key = message.text();
    else if (message.field === 2) value = anyValue(message.message(), budget, depth);
    else message.skip();
  }
  if (value !== undefined) target[key] = value;
}

/** Undefined for a value of no type. */
function anyValue(message: Message, budget: ValueBudget, depth: number): unknown {
  budget.take(depth);
  let value: unknown;
  while (message.next()) {
    switch (message.field) {
      case 1:
        value = message.text();
        break;
      case 2:
        value = message.varint() !== 0n;
        break;
      case 3:
        value = integerOf(message.varint());
        break;
      case 4:
        value = message.double();
        break;
      case 5:
        value = arrayOf(message.message(), budget, depth + 1);
        break;
      case 6:
        value = mapOf(message.message(), budget, depth + 1);
        break;
      case 7:
        value = message.hex();
        break;
      default:
        message.skip();
    }
  }
  return value;
}

function arrayOf(message: Message, budget: ValueBudget, depth: number): unknown[] {
  const values: unknown[] = [];
  while (message.next()) {
    if (message.field !== 1) {
      message.skip();
      continue;
    }
    const value = anyValue(message.message(), budget, depth);
    if (value !== undefined) values.push(value);
  }
  return values;
}

function mapOf(message: Message, budget: ValueBudget, depth: number): Attributes {
  const values = noAttributes();
  while (message.next()) {
    if (message.field === 1) readKeyValue(message.message(), values, budget, depth);
    else message.skip();
  }
  return values;
}

function orRejected<T>(read: () => T): { readonly value: T } | { readonly rejected: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof RejectedSpanError) return { rejected: error.message };
    throw error;
  }
}
