// The parts of an OTLP trace request that become events. They are the same for JSON and protobuf.

/** The object has no prototype, because an attribute may have any name, such as `__proto__`. */
export type Attributes = Record<string, unknown>;

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** Nanoseconds since the epoch. It is 0 if the span has no start. */
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Attributes;
  readonly valueless: readonly string[];
  readonly events: readonly SpanEvent[];
  readonly isError: boolean;
  readonly statusMessage: string;
}

export interface SpanEvent {
  readonly name: string;
  readonly attributes: Attributes;
}

export type ReadSpan =
  | { readonly span: OtlpSpan; readonly resource: Attributes; readonly scopeVersion: string }
  | { readonly rejected: string };

export const spansMax = 1_000;
/** An event may have 100 levels. This leaves 10 levels for the objects that contain the value. */
const valueDepthMax = 90;
export const spanBytesMax = 1_048_576;
/** The message contains the reason and the offset. */
export class MalformedOtlpError extends Error {}
export class RejectedSpanError extends Error {}

export function orRejected<T>(
  read: () => T,
): { readonly value: T } | { readonly rejected: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof RejectedSpanError || error instanceof MalformedOtlpError)
      return { rejected: error.message };
    throw error;
  }
}

export function checkDepth(depth: number): void {
  if (depth > valueDepthMax)
    throw new RejectedSpanError(`its values are nested more than ${valueDepthMax} deep`);
}

export function noAttributes(): Attributes {
  return Object.create(null) as Attributes;
}

export function isObject(value: unknown): value is Attributes {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function integerOf(value: number | bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** Parses JSON. An integer that a double cannot represent becomes a string of its digits. */
export function exactlyParsed(text: string): unknown {
  const value = JSON.parse(text);
  if (!/\d{16}/.test(text)) return value;
  return JSON.parse(text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|[-\d][\d.eE+-]*/gs, exactToken));
}

function exactToken(token: string): string {
  const isInexact = /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
  return isInexact ? `"${token}"` : token;
}
