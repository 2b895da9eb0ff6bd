// Reads and writes the JSON of lines that are converted. Numbers keep their digits, also those that
// no double holds.

export type JsonObject = Readonly<Record<string, unknown>>;

/** In the run-time since V8 11.4, and not in the types yet: the proposal JSON.parse source text. */
interface JsonWithSource {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}

/** A number that no double holds, by its text. */
interface RawNumber {
  readonly rawJSON: string;
}

const json = JSON as unknown as JsonWithSource;

/**
 * A number that a double may not hold with all its digits: 16 characters of digits and a point.
 * They stand one by one, not with a count: so the engine takes a seventh of the time for a text.
 */
const manyDigits = new RegExp(`\\d${"[\\d.]".repeat(15)}`);
/** And others that it does not hold: an exponent of three digits, the sign of a zero. */
const farOrSigned = /\d[eE][+-]?\d{3}|-0(?:\.0*)?(?:[eE][+-]?\d+)?(?=[\s,}\]]|$)/;

function mayBeLong(text: string): boolean {
  return manyDigits.test(text) || farOrSigned.test(text);
}

/** Throws a SyntaxError where the text is not JSON. */
export function parseJson(text: string): unknown {
  if (!mayBeLong(text)) return JSON.parse(text);
  return json.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && mayBeLong(source)
      ? json.rawJSON(source)
      : value,
  );
}

interface LineValues {
  /** The value of the line; of several values, and of an array of objects, each by itself. */
  readonly values: readonly unknown[];
  /** Why the rest of the line, or all of it, is not JSON. */
  readonly fault: SyntaxError | undefined;
}

/** What is on a line: mostly one value, but also several, with commas or blanks between them. */
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

/** Where the object or array that begins at `from` ends; the end of the text where it does not. */
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

/** Whether it is an object, and no number that is kept as its text. */
export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !json.isRawJSON(value)
  );
}

/** As a double, whatever digits it has; undefined for what is no number. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return json.isRawJSON(value) ? Number(value.rawJSON) : undefined;
}
