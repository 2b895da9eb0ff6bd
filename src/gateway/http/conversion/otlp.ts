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

/** Values in the attributes of one span or resource, those within arrays and maps included. */
const valuesMax = 10_000;
/** Arrays and maps within each other. An event may be 100 deep, with what is around its values. */
const valueDepthMax = 90;
/** No record of the store is larger. */
export const spanBytesMax = 1_048_576;

/** Thrown for a request that is not in its encoding. The message says what is wrong, and where. */
export class MalformedOtlpError extends Error {}
/** Thrown for a span that is read no further. The other spans of the request are. */
export class RejectedSpanError extends Error {}

/** Counts the values of one span or resource. */
export class ValueBudget {
  #left = valuesMax;

  take(depth: number): void {
    if (--this.#left < 0) throw new RejectedSpanError(`it has more than ${valuesMax} values`);
    if (depth > valueDepthMax)
      throw new RejectedSpanError(`its values are nested more than ${valueDepthMax} deep`);
  }
}

export function noAttributes(): Attributes {
  return Object.create(null) as Attributes;
}

/** A number if a double holds it, else its digits. */
export function integerOf(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** As JSON.parse, but with the digits, as text, of an integer that a double does not hold. */
export function exactlyParsed(text: string): unknown {
  return /\d{16}/.test(text) ? JSON.parse(text, exactValue as Reviver) : JSON.parse(text);
}

type Reviver = (key: string, value: unknown) => unknown;

function exactValue(_key: string, value: unknown, { source }: { source?: string }): unknown {
  const isInexact = typeof value === "number" && !Number.isSafeInteger(value);
  return isInexact && source !== undefined && /^-?\d+$/.test(source) ? source : value;
}
