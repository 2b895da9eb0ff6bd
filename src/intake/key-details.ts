// What an answer says of an API key that no project has: so much of it that its owner knows which it is, and never so much that others
// could use it. And where none came, what looks like it.

import type { Buffer } from "node:buffer";
import { Header, Row, TokenType } from "../scan/table.ts";
import type { Slips } from "./slips.ts";

const charsShown = 8;
/** Of a key shorter than this, half. */
const shortChars = 12;

const faults: readonly (readonly [RegExp, string])[] = [
  [
    /^<|>$|^\{|^\$|^%|your[ _-]|placeholder|^undefined$|^null$|^None$|^ph_project_api_key$/i,
    "it looks like a placeholder",
  ],
  [/^ph[sx]_/, "it looks like a personal key: send the project's"],
  [/^["'`]/, "it has quotes around it"],
  [/^bearer\s/i, "it has the word Bearer before it"],
  [/\s/, "it has white space inside"],
  [/[^ -~]/, "it has characters that no key has"],
];

export function unknownKeyDetail(key: string): string {
  const shown = key.slice(0, key.length < shortChars ? Math.floor(key.length / 2) : charsShown);
  const length = `${key.length} ${key.length === 1 ? "character" : "characters"}`;
  const which = shown === "" ? `of ${length}` : `that begins with ${shown.replace(/[^!-~]/g, "?")} (${length})`;
  const fault = faults.find(([pattern]) => pattern.test(key));
  return `No project has the API key ${which}${fault === undefined ? "" : `: ${fault[1]}`}`;
}

/** What to add to the answer where the body in the table shows no key. Looks past the events of a batch, as far as the table knows them. */
export function missingKeyHint(body: Buffer, table: Uint32Array, slips: Slips): string {
  const rows = table[Header.RowCount]!;
  const first = Header.Words;
  const [itemStart, itemEnd] = [table[first + Row.ItemStart]!, table[first + Row.ItemEnd]!];
  const [propertiesStart, propertiesEnd] = [table[first + Row.PropertiesStart]!, table[first + Row.PropertiesEnd]!];
  if (table[Header.BatchType] !== TokenType.Absent) {
    const lastEnd = table[Header.Words + (rows - 1) * Row.Words + Row.ItemEnd]!;
    const skip = rows > 0 ? { skipFrom: itemStart, skipTo: lastEnd } : {};
    return slips.hint({ body, start: 0, end: body.length, ...skip }, "api_key");
  }
  // One event, or the first of an array.
  const skip = rows > 0 && propertiesEnd > 0 ? { skipFrom: propertiesStart, skipTo: propertiesEnd } : {};
  return slips.hint({ body, start: itemStart, end: itemEnd, ...skip }, "api_key");
}
