// Parses and writes JSON. Numbers keep their digits even if a double cannot represent them.

export type JsonObject = Readonly<Record<string, unknown>>;

/** Methods of the proposal "JSON.parse source text access". The types do not contain them yet. */
interface JsonWithSource {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}

interface RawNumber {
  readonly rawJSON: string;
}

const json = JSON as unknown as JsonWithSource;

/**
 * Matches 16 characters that are digits or points. The repetition is written out, because it is
 * seven times as fast as a count.
 */
const manyDigits = new RegExp(`\\d${"[\\d.]".repeat(15)}`);
const farOrSigned = /\d[eE][+-]?\d{3}|-0(?:\.0*)?(?:[eE][+-]?\d+)?(?=[\s,}\]]|$)/;

function mayBeLong(text: string): boolean {
  return manyDigits.test(text) || farOrSigned.test(text);
}

export function withFiniteNumbers(text: string): string {
  if (!/NaN|Infinity/.test(text)) return text;
  return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/g, (token) =>
    token.startsWith('"') ? token : "null",
  );
}

export function parseJson(text: string): unknown {
  if (!mayBeLong(text)) return JSON.parse(text);
  return json.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && mayBeLong(source)
      ? json.rawJSON(source)
      : value,
  );
}

interface LineValues {
  readonly values: readonly unknown[];
  readonly fault: SyntaxError | undefined;
}

/** Parses a line. Its values may be separated by commas or white space. */
export function valuesOf(text: string): LineValues {
  let fault: SyntaxError;
  try {
    return { values: itemsOf(parseJson(text)), fault: undefined };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    fault = error;
  }
  const values: unknown[] = [];
  for (let at = 0; ; ) {
    while (/[\s,]/.test(text.charAt(at))) at++;
    if (at === text.length) return { values, fault: undefined };
    const end = endOfContainer(text, at);
    try {
      for (const value of itemsOf(parseJson(text.slice(at, end)))) values.push(value);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { values, fault };
    }
    at = end;
  }
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) && value.some(isObject) ? value : [value];
}

function endOfContainer(text: string, from: number): number {
  let depth = 0;
  let isInString = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (isInString) {
      if (character === "\\") at++;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === "{" || character === "[") depth++;
    else if ((character === "}" || character === "]") && --depth <= 0) return at + 1;
  }
  return text.length;
}

export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !json.isRawJSON(value)
  );
}

export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return json.isRawJSON(value) ? Number(value.rawJSON) : undefined;
}
