// The parts of an OTLP trace request that become events, as both of its encodings give them.

/** The attributes of a span or resource, without a prototype: a key may have any name. */
export type Attributes = Record<string, unknown>;

export interface OtlpSpan {
  /** Lower-case hexadecimal digits, "" if there is none. So are the other ids. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** Nanoseconds since 1970; 0 if the span does not say. */
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  readonly isError: boolean;
  readonly statusMessage: string;
}

export interface SpanEvent {
  readonly name: string;
  readonly attributes: Attributes;
}

/** A span with what it belongs to; or why the span cannot be read. */
export type ReadSpan =
  | { readonly span: OtlpSpan; readonly resource: Attributes; readonly scopeVersion: string }
  | { readonly rejected: string };

/** Spans of all kinds in one request. */
export const spansMax = 1_000;
/** Arrays and maps within each other. An event may be 100 deep, with what is around its values. */
const valueDepthMax = 90;
/** No record of the store is larger. */
export const spanBytesMax = 1_048_576;
/** Thrown for a request that is not in its encoding. The message says what is wrong, and where. */
export class MalformedOtlpError extends Error {}
/** Thrown for a span that is read no further. The other spans of the request are. */
export class RejectedSpanError extends Error {}

/** What `read` returns; or, for a part of a request that cannot be read, why. */
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

/** Throws for a value that is within too many others. */
export function checkDepth(depth: number): void {
  if (depth > valueDepthMax)
    throw new RejectedSpanError(`its values are nested more than ${valueDepthMax} deep`);
}

export function noAttributes(): Attributes {
  return Object.create(null) as Attributes;
}

/** A number if a double holds it, else its digits. */
export function integerOf(value: number | bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** As JSON.parse, but with the digits, as text, of an integer that a double does not hold. */
export function exactlyParsed(text: string): unknown {
  const value = JSON.parse(text);
  if (!/\d{16}/.test(text)) return value;
  return JSON.parse(text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|[-\d][\d.eE+-]*/gs, exactToken));
}

function exactToken(token: string): string {
  const isInexact = /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
  return isInexact ? `"${token}"` : token;
}
