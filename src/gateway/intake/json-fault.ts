// Explains why a body is not valid JSON, with a few characters around the error, but no key.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { stars, withoutKeys } from "../../platform/base/without-keys.ts";

const charsBefore = 24;
const charsAfter = 16;
/** This number of bytes is enough to recognize a key and to hide it. */
const bytesAround = 512;
const firstTextBytesMax = 4_096;
const longLineBytesMax = 1_048_576;

export function jsonProblem(
  body: Buffer,
  offset: number,
  bytesBefore: number,
): { readonly detail: string; readonly excerpt: string } {
  const at = `byte offset ${bytesBefore + offset}`;
  const hint = kindOfBody(body) ?? (offset < body.length ? hintAt(body, offset) : undefined);
  const what =
    offset < body.length
      ? `unexpected ${nameOf(body[offset]!)} at ${at}`
      : `it ends too early, at ${at}`;
  const detail = `The body is not valid JSON: ${what}${hint === undefined ? "" : `: ${hint}`}`;
  return { detail, excerpt: excerptOf(body, offset) };
}

function nameOf(byte: number): string {
  if (byte > 0x20 && byte < 0x7f) return String.fromCharCode(byte);
  if (byte === 0x20) return "white space";
  if (byte === Ascii.LineFeed || byte === 0x0d) return "line break";
  return byte < 0x20 ? "control character" : "character that is not ASCII";
}

function hintAt(body: Buffer, offset: number): string | undefined {
  const before = body.toString("latin1", Math.max(0, offset - bytesAround), offset);
  const after = body.toString("latin1", offset, offset + bytesAround);
  const character = after[0]!;
  const last = before.trimEnd().at(-1) ?? "";
  const controlHint = after.charCodeAt(0) < 0x20 ? hintAtControl(body, offset) : undefined;
  if (controlHint !== undefined) return controlHint;
  if (body[offset - 1] === Ascii.Backslash)
    return "JSON has no such escape: write two backslashes for a backslash";
  if (/\\u[\da-f]{0,3}$/i.test(before)) return "\\u must be followed by four hexadecimal digits";
  if (character === "'" || character === "`") return "names and strings must be in double quotes";
  if ((character === "}" || character === "]") && last === ",") return "remove the comma before it";
  if (character === "#" || /^\/[/*]/.test(after)) return "JSON has no comments";
  if (character === "," && /[,[{:]/.test(last))
    return "a value is missing before the comma, or the comma must be removed";
  const word = wordHint(before, after);
  if (word !== undefined) return word;
  if (/[}\]"\w]/.test(last) && /["{[\w-]/.test(character))
    return afterValueHint(body, offset, character);
  return undefined;
}

/**
 * Returns undefined for white space outside of strings, because in that case the error is earlier
 * in the text.
 */
function hintAtControl(body: Buffer, offset: number): string | undefined {
  const isWithin = isWithinString(body, offset);
  const within = "in a string, write line breaks and control characters as \\n or \\u....";
  if (isWithin === true) return within;
  if (isWithin === undefined) return `${within}; outside a string, remove it`;
  if (isSpace.test(String.fromCharCode(body[offset]!))) return undefined;
  return "control characters are not allowed outside strings: remove it";
}

function isWithinString(body: Buffer, offset: number): boolean | undefined {
  let start = Math.max(0, offset - bytesAround);
  // The text to search must not begin after a backslash. Otherwise, an escaped quote would seem to
  // end the string.
  while (start > 0 && body[start - 1] === Ascii.Backslash && offset - start < 2 * bytesAround)
    start--;
  const before = body.toString("latin1", start, offset);
  const fromOutside = endsWithinString(before, false);
  const fromWithin = start === 0 ? undefined : endsWithinString(before, true);
  if (fromOutside === undefined || fromWithin === undefined) return fromOutside ?? fromWithin;
  return fromOutside === fromWithin ? fromOutside : undefined;
}

const isSpace = /[ \t\r\n]/;
const isBare = /[-+.0-9eEtrufalsn{}[\]:,]/;

function endsWithinString(text: string, beginsWithin: boolean): boolean | undefined {
  let isWithin = beginsWithin;
  let last = "";
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (isWithin) {
      if (character === "\\") at++;
      else if (character < " ") return undefined;
      else if (character === '"') isWithin = false;
      last = '"';
    } else if (character === '"') {
      if (last !== "" && !"{[:,".includes(last)) return undefined;
      isWithin = true;
    } else if (!isSpace.test(character)) {
      if (!isBare.test(character) || (last === '"' && !":,]}".includes(character)))
        return undefined;
      last = character;
    }
  }
  return isWithin;
}

const notJson: ReadonlyMap<string, string> = new Map([
  ["nan", "null"],
  ["infinity", "null"],
  ["inf", "null"],
  ["undefined", "null"],
  ["none", "null"],
  ["nil", "null"],
  ["null", "null"],
  ["true", "true"],
  ["false", "false"],
]);

function wordHint(before: string, after: string): string | undefined {
  const head = /[\w$]{0,24}$/.exec(before)?.[0] ?? "";
  const rest = /^[\w$]{0,24}/.exec(after)?.[0] ?? "";
  const word = head + rest;
  const meant = notJson.get(word.toLowerCase());
  if (meant !== undefined && word !== meant)
    return `this is not a JSON word: write ${meant}, or a string in quotes`;
  const last =
    before
      .slice(0, before.length - head.length)
      .trimEnd()
      .at(-1) ?? "";
  if (/^[A-Za-z_$]/.test(word) && rest !== "" && /^[\w$]*\s*:/.test(after) && /[{,]/.test(last)) {
    return "names must be in double quotes";
  }
  if (/^[A-Za-z_$]/.test(rest) && head === "" && /[[,:]/.test(last))
    return "strings must be in double quotes";
  if (/^-?0$/.test(head) && /^\d/.test(rest)) return "a number must not begin with an extra 0";
  if (/^[+.]/.test(after) && /[[,:]/.test(last))
    return "a number must begin with a digit, or with - and a digit";
  return undefined;
}

function afterValueHint(body: Buffer, offset: number, character: string): string {
  if (followsWholeText(body, offset)) {
    return 'it looks like several JSON texts, one after another: send an array of them, or {"batch": [...]}';
  }
  return character === '"'
    ? "a comma or a colon is missing before it"
    : "a comma is missing before it";
}

function followsWholeText(body: Buffer, offset: number): boolean {
  if (offset <= firstTextBytesMax) {
    try {
      JSON.parse(body.toString("utf8", 0, offset));
      return true;
    } catch {
      return false;
    }
  }
  if (offset > longLineBytesMax) return false;
  const line = body.subarray(0, offset).indexOf(Ascii.LineFeed);
  return (
    line > firstTextBytesMax && line < offset && body.toString("latin1", line, offset).trim() === ""
  );
}

function excerptOf(body: Buffer, offset: number): string {
  const start = Math.max(0, offset - bytesAround);
  const text = body.toString("latin1", start, offset + bytesAround);
  const errorAt = offset - start;
  const hidden = withoutKeys(start === 0 ? text : text.replace(/^[^"',:{}[\]]*/, stars));
  return hidden
    .slice(Math.max(0, errorAt - charsBefore), errorAt + charsAfter)
    .replace(/[^ -~]/g, "?")
    .trim();
}

const bytesRead = 128;

const byFirstBytes: readonly (readonly [RegExp, string])[] = [
  [/^(?:fffe|feff)/, "it looks like UTF-16: send UTF-8"],
  [/^1f8b/, "it looks like gzip inside another encoding: compress it once"],
  [/^28b52ffd/, "it looks like zstd: set Content-Encoding to zstd"],
  [/^78(?:01|5e|9c|da)/, "it looks like deflate: set Content-Encoding to deflate"],
];

export function kindOfBody(body: Buffer): string | undefined {
  const first = body.toString("hex", 0, 4);
  const known = byFirstBytes.find(([bytes]) => bytes.test(first));
  if (known !== undefined) return known[1];
  if (body.length > 1 && (body[0] === 0 || body[1] === 0))
    return "it looks like UTF-16: send UTF-8";
  const text = body.toString("latin1", 0, bytesRead).trimStart();
  if (text.startsWith("--"))
    return "it looks like multipart/form-data: send the JSON as the body itself";
  if (text.startsWith("<")) return "it looks like XML or HTML: send JSON";
  if (/^(?:eyJ|W3s|ewog)[\w+/=-]*$/.test(text)) return "it looks like truncated or damaged base64";
  if (/^[\w.$%[\]+-]{1,64}=/.test(text)) {
    return "it looks like a form: send JSON, or a form with the JSON in its field data";
  }
  return undefined;
}
