// The slow path's one tool: valid JSON text to its plain, compact form, which the scanner then reads like any
// other. Keys are unescaped, of duplicate keys the last stays, lone surrogates become U+FFFD.

// JSON.parse source text access and JSON.rawJSON are in V8 since 11.4 but not yet in TypeScript's library.
interface RawJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
}
const rawJson = JSON as unknown as RawJson;

/**
 * Numbers keep their text: ids beyond 2^53 and 1e400 come out as they went in.
 * Throws RangeError where the nesting is deeper than the JavaScript stack (some thousand levels); SyntaxError for what is no JSON.
 */
export function normaliseJson(text: string): string {
  const value = rawJson.parse(text, (_key, parsed, context) =>
    typeof parsed === "number" && context.source !== undefined && String(parsed) !== context.source
      ? rawJson.rawJSON(context.source)
      : parsed,
  );
  // JSON.stringify writes surrogate pairs as they are and lone surrogates as \udXXX, so each such escape is a lone one;
  // the alternative in the pattern steps over `\\`, behind which "ud800" is plain text.
  return JSON.stringify(value).replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (escaped, surrogate) =>
    surrogate === undefined ? escaped : "\ufffd",
  );
}
