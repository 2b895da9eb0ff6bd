// What an answer says of an API key that no project has: enough of the key that its owner knows
// which one it is, never so much that others could use it. Where no key came, it says which member
// of the body looks like one.

import type { Buffer } from "node:buffer";
import { Header, Row, TokenType } from "../../../records/table.ts";
import type { ObjectSpan } from "./members.ts";
import type { Slips } from "./slips.ts";

const charsShown = 8;
/** A key shorter than this is shown by half. */
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
  const which =
    shown === "" ? `of ${length}` : `that begins with ${shown.replace(/[^!-~]/g, "?")} (${length})`;
  const fault = faults.find(([pattern]) => pattern.test(key));
  return `No project has the API key ${which}${fault === undefined ? "" : `: ${fault[1]}`}`;
}

/**
 * The number of items of an array that are searched for a slip: most have the same names as the
 * first.
 */
const itemsLookedAt = 4;

/**
 * The hint on a member that looks like the key with a slip in its name, where the body has no key;
 * "" where none does.
 */
export function missingKeyHint(body: Buffer, table: Uint32Array, slips: Slips): string {
  for (const span of keySpans(body, table)) {
    const hint = slips.hint(span, "api_key");
    if (hint !== "") return hint;
  }
  return "";
}

/**
 * The hint for the newer protocol (v1), where a key in the body means nothing, whatever its name:
 * it says so of the member that is the key or looks like it.
 */
export function keyInBodyHint(body: Buffer, table: Uint32Array, slips: Slips): string {
  const type = table[Header.KeyType];
  if (type === TokenType.PlainString || type === TokenType.EscapedString)
    return "one in the body means nothing";
  for (const span of keySpans(body, table)) {
    const slip = slips.find(span, "api_key");
    if (slip !== undefined) return `"${slip.sent}" in the body means nothing`;
  }
  return "";
}

/**
 * The objects that may hold a key. The events of a batch are skipped, as far as the table has rows
 * for them.
 */
function keySpans(body: Buffer, table: Uint32Array): ObjectSpan[] {
  const rows = table[Header.RowCount]!;
  if (table[Header.BatchType] !== TokenType.Absent) {
    const skip =
      rows > 0
        ? { skipFrom: rowAt(table, 0).itemStart, skipTo: rowAt(table, rows - 1).itemEnd }
        : {};
    return [{ body, start: 0, end: body.length, ...skip }];
  }
  // The body is one event, or an array of them. One key is enough for all, so the first few items
  // do. An item that is no object has no members, and its span is harmless.
  return Array.from({ length: Math.min(rows, itemsLookedAt) }, (_, row) => {
    const { itemStart, itemEnd, propertiesStart, propertiesEnd } = rowAt(table, row);
    const skip = propertiesEnd > 0 ? { skipFrom: propertiesStart, skipTo: propertiesEnd } : {};
    return { body, start: itemStart, end: itemEnd, ...skip };
  });
}

function rowAt(table: Uint32Array, row: number) {
  const at = Header.Words + row * Row.Words;
  return {
    itemStart: table[at + Row.ItemStart]!,
    itemEnd: table[at + Row.ItemEnd]!,
    propertiesStart: table[at + Row.PropertiesStart]!,
    propertiesEnd: table[at + Row.PropertiesEnd]!,
  };
}
