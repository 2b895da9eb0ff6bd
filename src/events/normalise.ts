// The slow path's one tool: valid JSON text to its plain, compact form, which the scanner then reads like any
// other. Keys are unescaped, of duplicate keys the last stays, lone surrogates become U+FFFD.

// JSON.parse source text access and JSON.rawJSON are in V8 since 11.4 but not yet in TypeScript's library.
interface RawJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
}
const rawJson = JSON as unknown as RawJson;

// Finds, at the start of a token, every number that JSON.parse and JSON.stringify may write otherwise than it was: an exponent, more digits
// than a double surely keeps, a fraction that ends in 0, a very small one, -0. It also finds some that are fine,
// and some inside strings; those only cost time.
const unusualNumber =
  /(?:^|[:[,\s])-?(?:\d{16}|[\d.]{17}|\d+(?:\.\d+)?[eE]|\d+\.\d*0(?!\d)|0\.000000)|(?:^|[:[,\s])-0(?![.\d])/;

/**
 * Numbers keep their text: ids beyond 2^53 and 1e400 come out as they went in.
 * Throws RangeError where the nesting is deeper than the JavaScript stack (some thousand levels); SyntaxError for what is no JSON.
 */
export function normaliseJson(text: string): string {
  // The reviver makes it ten times slower, 10 MB/s, so it is for the texts that need it.
  const value = unusualNumber.test(text) ? rawJson.parse(text, keepNumberText) : JSON.parse(text);
  // JSON.stringify writes surrogate pairs as they are and lone surrogates as \udXXX, so each such escape is a lone one;
  // the alternative in the pattern steps over `\\`, behind which "ud800" is plain text.
  return JSON.stringify(value).replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (escaped, surrogate) =>
    surrogate === undefined ? escaped : "\ufffd",
  );
}

function keepNumberText(_key: string, parsed: unknown, { source }: { source?: string }): unknown {
  const unusual = typeof parsed === "number" && source !== undefined && String(parsed) !== source;
  return unusual ? rawJson.rawJSON(source) : parsed;
}
