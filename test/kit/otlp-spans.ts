import { Buffer } from "node:buffer";

type Value = string | number | boolean | Uint8Array | null | readonly Value[] | ValueMap;
interface ValueMap {
  readonly [key: string]: Value;
}

export interface TestSpan {
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
  readonly name?: string;
  readonly startNs?: bigint;
  readonly endNs?: bigint;
  readonly attributes?: ValueMap;
  readonly events?: readonly { readonly name: string; readonly attributes?: ValueMap }[];
  readonly status?: { readonly code: number; readonly message?: string };
}

export interface TestSpans {
  readonly resource?: ValueMap;
  readonly scopeVersion?: string;
  readonly spans: readonly TestSpan[];
}

export function otlpProtobuf(groups: readonly TestSpans[]): Buffer {
  return Buffer.concat(
    groups.map(({ resource = {}, scopeVersion = "", spans }) =>
      field(
        1,
        field(1, ...keyValues(1, resource)),
        field(2, field(1, text(2, scopeVersion)), ...spans.map((span) => field(2, spanOf(span)))),
      ),
    ),
  );
}

export function otlpJson(groups: readonly TestSpans[]): string {
  return JSON.stringify({
    resourceSpans: groups.map(({ resource = {}, scopeVersion = "", spans }) => ({
      resource: { attributes: jsonPairs(resource) },
      scopeSpans: [
        {
          scope: { name: "test", version: scopeVersion },
          spans: spans.map(
            ({ startNs = 0n, endNs = 0n, attributes = {}, events = [], ...rest }) => ({
              ...rest,
              startTimeUnixNano: String(startNs),
              endTimeUnixNano: String(endNs),
              attributes: jsonPairs(attributes),
              events: events.map((event) => ({
                name: event.name,
                attributes: jsonPairs(event.attributes ?? {}),
              })),
            }),
          ),
        },
      ],
    })),
  });
}

function spanOf(span: TestSpan): Buffer {
  const { startNs = 0n, endNs = 0n, attributes = {}, events = [], status } = span;
  return Buffer.concat([
    bytes(1, Buffer.from(span.traceId ?? "", "hex")),
    bytes(2, Buffer.from(span.spanId ?? "", "hex")),
    bytes(4, Buffer.from(span.parentSpanId ?? "", "hex")),
    text(5, span.name ?? ""),
    varintField(6, 3n),
    fixed64(7, startNs),
    fixed64(8, endNs),
    ...keyValues(9, attributes),
    ...events.map((event) =>
      field(11, fixed64(1, 1n), text(2, event.name), ...keyValues(3, event.attributes ?? {})),
    ),
    ...(status === undefined
      ? []
      : [field(15, text(2, status.message ?? ""), varintField(3, BigInt(status.code)))]),
  ]);
}

function keyValues(number: number, values: ValueMap): Buffer[] {
  return Object.entries(values).map(([key, value]) =>
    field(number, text(1, key), field(2, anyValue(value))),
  );
}

function anyValue(value: Value): Buffer {
  if (value === null) return Buffer.alloc(0);
  if (typeof value === "string") return text(1, value);
  if (typeof value === "boolean") return varintField(2, value ? 1n : 0n);
  if (typeof value === "number") {
    if (Number.isInteger(value)) return varintField(3, BigInt(value));
    const double = Buffer.alloc(8);
    double.writeDoubleLE(value);
    return Buffer.concat([varint((4n << 3n) | 1n), double]);
  }
  if (value instanceof Uint8Array) return bytes(7, value);
  if (isList(value)) return field(5, ...value.map((item) => field(1, anyValue(item))));
  return field(6, ...keyValues(1, value));
}

function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

function jsonPairs(values: ValueMap): unknown[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: jsonValue(value) }));
}

function jsonValue(value: Value): unknown {
  if (value === null) return {};
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number")
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (value instanceof Uint8Array) return { bytesValue: Buffer.from(value).toString("base64") };
  if (isList(value)) return { arrayValue: { values: value.map(jsonValue) } };
  return { kvlistValue: { values: jsonPairs(value) } };
}

function field(number: number, ...parts: readonly Buffer[]): Buffer {
  return bytes(number, Buffer.concat(parts));
}

function text(number: number, value: string): Buffer {
  return bytes(number, Buffer.from(value));
}

function bytes(number: number, value: Uint8Array): Buffer {
  return Buffer.concat([varint((BigInt(number) << 3n) | 2n), varint(BigInt(value.length)), value]);
}

function fixed64(number: number, value: bigint): Buffer {
  const word = Buffer.alloc(8);
  word.writeBigUInt64LE(value);
  return Buffer.concat([varint((BigInt(number) << 3n) | 1n), word]);
}

function varintField(number: number, value: bigint): Buffer {
  return Buffer.concat([varint(BigInt(number) << 3n), varint(BigInt.asUintN(64, value))]);
}

function varint(value: bigint): Buffer {
  const written: number[] = [];
  let rest = value;
  for (; rest > 0x7fn; rest >>= 7n) written.push(Number(rest & 0x7fn) | 0x80);
  written.push(Number(rest));
  return Buffer.from(written);
}
