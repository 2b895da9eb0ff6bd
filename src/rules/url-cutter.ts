// Cuts query parameters and the fragment from a URL, as text, so that the rest keeps its spelling.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import type { Privacy, PropertyPath } from "./rules-file.ts";

const urlNames = [
  "$current_url",
  "$referrer",
  "$initial_current_url",
  "$initial_referrer",
  "$session_entry_url",
  "$session_entry_referrer",
] as const;

/** The properties with a URL, of the event and of the person. */
export const urlProperties: readonly PropertyPath[] = urlNames.flatMap((name) => [
  name,
  `$set.${name}`,
  `$set_once.${name}`,
]);

export class UrlCutter {
  readonly #names: ReadonlySet<string>;
  /** Maximum characters of a sent name: each byte of the longest name can be escaped. */
  readonly #sentLengthMax: number;
  readonly #lengthMax: number;
  readonly #cutsAll: boolean;
  readonly #cutsFragment: boolean;

  constructor({ cutQuery, cutFragment }: Pick<Privacy, "cutQuery" | "cutFragment">) {
    this.#names = new Set(cutQuery);
    this.#sentLengthMax = 3 * Math.max(0, ...cutQuery.map((name) => Buffer.byteLength(name)));
    this.#lengthMax = Math.max(0, ...cutQuery.map((name) => name.length));
    this.#cutsAll = cutQuery.includes("*");
    this.#cutsFragment = cutFragment;
  }

  /** Returns whether a URL in JSON may have a part that is cut. */
  mayCut(json: Buffer, start: number, end: number): boolean {
    for (let at = start; at < end; at++) {
      const byte = json[at];
      // Escapes can be any character.
      if (byte === questionMark || byte === hash || byte === Ascii.Backslash) return true;
    }
    return false;
  }

  cut(url: string): string {
    const fragmentAt = url.indexOf("#");
    const beforeFragment = fragmentAt < 0 ? url : url.slice(0, fragmentAt);
    const fragment = fragmentAt < 0 || this.#cutsFragment ? "" : url.slice(fragmentAt);
    // Some web apps have their route and its parameters in the fragment.
    return this.#withoutParameters(beforeFragment) + this.#withoutParameters(fragment);
  }

  #withoutParameters(url: string): string {
    const queryAt = url.indexOf("?");
    if (queryAt < 0 || this.#names.size === 0) return url;
    if (this.#cutsAll) return url.slice(0, queryAt);
    // `left` has the parameters before `read` that are left, each after a separator.
    let left = "";
    let read = queryAt;
    for (let start = queryAt + 1; start <= url.length; ) {
      const found = url.indexOf("&", start);
      const end = found < 0 ? url.length : found;
      if (this.#cutsParameter(url, start, end)) {
        left += url.slice(read, start - 1);
        read = end;
      }
      start = end + 1;
    }
    if (read === queryAt) return url;
    left += url.slice(read);
    return left === "" ? url.slice(0, queryAt) : `${url.slice(0, queryAt)}?${left.slice(1)}`;
  }

  /** `start` and `end`: the parameter in the URL, without separators. */
  #cutsParameter(url: string, start: number, end: number): boolean {
    let isPlain = true;
    let nameEnd = start;
    for (; nameEnd < end; nameEnd++) {
      const code = url.charCodeAt(nameEnd);
      if (code === equals) break;
      if (code === percent || code === plus || code < space) isPlain = false;
    }
    if (isPlain && nameEnd - start > this.#lengthMax) return false;
    const sent = url.slice(start, nameEnd);
    if (isPlain) return this.#names.has(sent);
    const name = sent.replace(ignored, "");
    return name.length <= this.#sentLengthMax && this.#names.has(decoded(name));
  }
}

/** URL parsers ignore these characters. */
const ignored = /[\t\n\r]+/g;
const space = 0x20;
const plus = 0x2b;
const equals = 0x3d;

/** Decodes like browsers do: a malformed escape stays as it is. Takes time linear in the length. */
function decoded(sentName: string): string {
  const name = sentName.replaceAll("+", " ");
  if (!name.includes("%")) return name;
  return decodedAscii(name) ?? decodedUtf8(name);
}

/** Returns undefined if the name has another character than those of ASCII. */
function decodedAscii(name: string): string | undefined {
  let text = "";
  for (let at = 0; at < name.length; at++) {
    let code = name.charCodeAt(at);
    const high = code === percent ? digitOf(name.charCodeAt(at + 1)) : -1;
    const low = high < 0 ? -1 : digitOf(name.charCodeAt(at + 2));
    if (low >= 0) {
      code = 16 * high + low;
      at += 2;
    }
    if (code > 0x7f) return undefined;
    text += String.fromCharCode(code);
  }
  return text;
}

function decodedUtf8(name: string): string {
  const sent = Buffer.from(name);
  let length = 0;
  for (let at = 0; at < sent.length; at++) {
    const high = sent[at] === percent ? digitOf(sent[at + 1]) : -1;
    const low = high < 0 ? -1 : digitOf(sent[at + 2]);
    if (low >= 0) at += 2;
    sent[length++] = low < 0 ? sent[at]! : 16 * high + low;
  }
  return sent.toString("utf8", 0, length);
}

const percent = 0x25;
const hash = 0x23;
const questionMark = 0x3f;

/** Returns the value of a hexadecimal digit; -1 for any other byte. */
function digitOf(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}
