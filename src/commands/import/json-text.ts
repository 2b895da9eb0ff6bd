// Reads and writes the JSON of lines that are converted. Numbers keep their digits, even those that
// a double cannot represent.

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The JSON.parse source text access proposal: available since V8 11.4, but not in the types yet.
 */
interface JsonWithSource {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}

/** A number that a double cannot represent, as its text. */
interface RawNumber {
  readonly rawJSON: string;
}

const json = JSON as unknown as JsonWithSource;

/**
 * A number that a double may not represent exactly: 16 characters of digits and a point. The
 * characters are repeated instead of counted, which makes the regular expression seven times as
 * fast.
 */
const manyDigits = new RegExp(`\\d${"[\\d.]".repeat(15)}`);
/** Other numbers that a double does not preserve: an exponent of three digits, a negative zero. */
const farOrSigned = /\d[eE][+-]?\d{3}|-0(?:\.0*)?(?:[eE][+-]?\d+)?(?=[\s,}\]]|$)/;

function mayBeLong(text: string): boolean {
  return manyDigits.test(text) || farOrSigned.test(text);
}

/** Throws a SyntaxError if the text is not JSON. */
export function parseJson(text: string): unknown {
  if (!mayBeLong(text)) return JSON.parse(text);
  return json.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && mayBeLong(source)
      ? json.rawJSON(source)
      : value,
  );
}

interface LineValues {
  /** The value of the line, or each of several values, or each object of an array. */
  readonly values: readonly unknown[];
  /** Why the rest of the line, or all of it, is not JSON. */
  readonly fault: SyntaxError | undefined;
}

/** Returns the values of a line: usually one, but also several, separated by commas or blanks. */
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

/**
 * Returns the end of the object or array that begins at `from`; the end of the text if it is not
 * closed.
 */
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

/** Whether the value is an object, and not a number that is stored as its text. */
export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !json.isRawJSON(value)
  );
}

/** Returns the number as a double, however many digits it has; undefined if it is not a number. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return json.isRawJSON(value) ? Number(value.rawJSON) : undefined;
}
