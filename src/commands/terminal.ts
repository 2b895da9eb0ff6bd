// Makes text from a client safe for the operator's terminal. Control characters become JSON
// escapes, which do not change the meaning of JSON.

import { greatestOf } from "../platform/base/extremes.ts";

/**
 * Matches C0 except tab and line feed, DEL, C1, the line separator, the paragraph separator, and
 * characters that change the text direction.
 */
const acting =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export function forTerminal(text: string): string {
  return text.replaceAll(
    acting,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Returns the first characters, without half of a surrogate pair, which would print as garbage. */
export function beginningOf(text: string, charactersMax: number): string {
  const isCutPair = /[\uD800-\uDBFF]/.test(text[charactersMax - 1] ?? "");
  return text.slice(0, isCutPair ? charactersMax - 1 : charactersMax);
}

export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => greatestOf(rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}

export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}
