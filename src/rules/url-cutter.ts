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
  readonly #cutsAll: boolean;
  readonly #cutsFragment: boolean;

  constructor({ cutQuery, cutFragment }: Pick<Privacy, "cutQuery" | "cutFragment">) {
    this.#names = new Set(cutQuery);
    this.#sentLengthMax = 3 * Math.max(0, ...cutQuery.map((name) => Buffer.byteLength(name)));
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
    const path = url.slice(0, queryAt);
    if (this.#cutsAll) return path;
    const parameters = url.slice(queryAt + 1).split("&");
    const left = parameters.filter((parameter) => !this.#cutsParameter(parameter));
    if (left.length === parameters.length) return url;
    return left.length === 0 ? path : `${path}?${left.join("&")}`;
  }

  #cutsParameter(parameter: string): boolean {
    const end = parameter.indexOf("=");
    const name = (end < 0 ? parameter : parameter.slice(0, end)).replace(ignored, "");
    return name.length <= this.#sentLengthMax && this.#names.has(decoded(name));
  }
}

/** URL parsers ignore these characters. */
const ignored = /[\t\n\r]+/g;

/** Decodes like browsers do: a malformed escape stays as it is. Takes time linear in the length. */
function decoded(sentName: string): string {
  const name = sentName.replaceAll("+", " ");
  if (!name.includes("%")) return name;
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
