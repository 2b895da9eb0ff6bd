// Reads and writes the JSON of lines that are converted. Numbers keep their digits, also those that
// no double holds.

export type JsonObject = Readonly<Record<string, unknown>>;

/** In the run-time since V8 11.4, and not in the types yet: the proposal JSON.parse source text. */
interface JsonWithSource {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}

/** A double holds every number of fewer digits. */
const longDigits = /\d{16}|\d[eE][+-]?\d{3}/;

/** Throws a SyntaxError where the text is not JSON. */
export function parseJson(text: string): unknown {
  if (!longDigits.test(text)) return JSON.parse(text);
  const json = JSON as unknown as JsonWithSource;
  return json.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  );
}
