// Checks UUIDs, and writes new UUIDs of version 7 (RFC 9562, section 5.7) to a frame. The `uuid`
// package takes 1.4 µs per UUID, and this code takes 0.05 µs.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";

export const uuidBytes = 36;

export const hexDigits = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
const entropyBytes = 4_000;

const notHex = 1;
const upperCase = 2;
const hexClass = new Uint8Array(256).fill(notHex);
for (const digit of hexDigits) hexClass[digit] = 0;
for (const digit of "ABCDEF") hexClass[digit.charCodeAt(0)] = upperCase;

export const UuidForm = { None: 0, Lower: 1, Upper: 2 } as const;
export type UuidForm = (typeof UuidForm)[keyof typeof UuidForm];

/**
 * Checks the form of a UUID, which has 8-4-4-4-12 hexadecimal digits. `Upper` means that some
 * letters are in upper case.
 */
export function uuidForm(body: Buffer, start: number, end: number): UuidForm {
  if (end - start !== uuidBytes) return UuidForm.None;
  if (
    body[start + 8] !== Ascii.Minus ||
    body[start + 13] !== Ascii.Minus ||
    body[start + 18] !== Ascii.Minus ||
    body[start + 23] !== Ascii.Minus
  ) {
    return UuidForm.None;
  }
  if (body.length >= viewedBytesMin && isLowerHex(viewOnce(body), start)) return UuidForm.Lower;
  const seen =
    classesOf(body, start, start + 8) |
    classesOf(body, start + 9, start + 13) |
    classesOf(body, start + 14, start + 18) |
    classesOf(body, start + 19, start + 23) |
    classesOf(body, start + 24, end);
  return seen === 0 ? UuidForm.Lower : seen === upperCase ? UuidForm.Upper : UuidForm.None;
}

/** A longer body is read through a DataView, in 27 ns per UUID instead of 65 ns. */
const viewedBytesMin = 2_048;
let viewed: Buffer | undefined;
const noView: DataView = new DataView(new ArrayBuffer(0));
let lastView = noView;

/** The view is released after the current callback, because a body may have many megabytes. */
function viewOnce(body: Buffer): DataView {
  if (body !== viewed) {
    if (viewed === undefined) queueMicrotask(releaseView);
    viewed = body;
    lastView = viewOf(body);
  }
  return lastView;
}

function releaseView(): void {
  viewed = undefined;
  lastView = noView;
}

function isLowerHex(view: DataView, start: number): boolean {
  const a = view.getInt32(start);
  const b = view.getInt32(start + 4);
  const c = view.getInt32(start + 9);
  const d = view.getInt32(start + 14);
  const e = view.getInt32(start + 19);
  const f = view.getInt32(start + 24);
  const g = view.getInt32(start + 28);
  const h = view.getInt32(start + 32);
  if (((a | b | c | d | e | f | g | h) & topBits) !== 0) return false;
  const early = lowerHexOf(a) & lowerHexOf(b) & lowerHexOf(c) & lowerHexOf(d);
  const late = lowerHexOf(e) & lowerHexOf(f) & lowerHexOf(g) & lowerHexOf(h);
  return (early & late & topBits) === topBits;
}

const topBits = 0x8080_8080 | 0;
// Each byte of a word is a character. If one of these numbers is added to the word, the top bit of
// each byte shows whether its character is at least "0", ":", "a" or "g".
const fromZero = 0x5050_5050;
const fromColon = 0x4646_4646;
const fromA = 0x1f1f_1f1f;
const fromG = 0x1919_1919;

function lowerHexOf(word: number): number {
  const digit = (word + fromZero) & ~(word + fromColon);
  const letter = (word + fromA) & ~(word + fromG);
  return digit | letter;
}

function classesOf(body: Buffer, start: number, end: number): number {
  let seen = 0;
  for (let at = start; at < end; at++) seen |= hexClass[body[at]!]!;
  return seen;
}

const letterF = 0x66;
const toLowerCase = 0x20;

/**
 * Returns whether a UUID is the nil UUID or the max UUID (RFC 9562, 5.9 and 5.10). Several events
 * may have these UUIDs.
 */
export function isBlankUuid(text: Buffer, start: number): boolean {
  const first = text[start]! | toLowerCase;
  if (first !== hexDigits[0] && first !== letterF) return false;
  for (let at = start + 1; at < start + uuidBytes; at++) {
    const byte = text[at]!;
    if ((byte | toLowerCase) !== first && byte !== Ascii.Minus) return false;
  }
  return true;
}

const escapedBytesMax = 6 * uuidBytes + 2;

export function unescapedUuid(body: Buffer, start: number, end: number): Buffer | undefined {
  if (end - start > escapedBytesMax) return undefined;
  const text = Buffer.from(JSON.parse(body.toString("utf8", start, end)) as string);
  return uuidForm(text, 0, text.length) === UuidForm.None ? undefined : text;
}

interface UuidSourceOptions {
  readonly randomFill: (bytes: Uint8Array) => void;
}

const digitsPerUuid = 20;
const entropyDigits = 2 * entropyBytes;

/**
 * Generates UUIDs. It writes several characters at a time through a DataView. This takes 45 ns per
 * UUID instead of 72 ns.
 */
export class UuidSource {
  readonly #randomFill: (bytes: Uint8Array) => void;
  readonly #entropy = Buffer.alloc(entropyBytes);
  readonly #digits = Buffer.alloc(entropyDigits);
  readonly #unused = viewOf(this.#digits);
  #used = entropyDigits;
  #target: Buffer = this.#digits;
  #view = this.#unused;
  readonly #time = viewOf(Buffer.alloc(14));
  #timeMs = Number.NaN;

  constructor({ randomFill }: UuidSourceOptions) {
    this.#randomFill = randomFill;
  }

  /** `nowMs` is in milliseconds since the epoch. */
  write(target: Buffer, at: number, nowMs: number): void {
    if (target !== this.#target) {
      this.#target = target;
      this.#view = viewOf(target);
    }
    if (nowMs !== this.#timeMs) this.#setTime(nowMs);
    if (this.#used === entropyDigits) this.#refill();
    const view = this.#view;
    const time = this.#time;
    const unused = this.#unused;
    const from = this.#used;
    this.#used = from + digitsPerUuid;
    view.setUint32(at, time.getUint32(0));
    view.setUint32(at + 4, time.getUint32(4));
    view.setUint32(at + 8, time.getUint32(8));
    view.setUint16(at + 12, time.getUint16(12));
    // The first digit of the third group is replaced by the version. The first digit of the fourth
    // group is replaced by the variant.
    view.setUint32(at + 14, unused.getUint32(from));
    view.setUint8(at + 14, versionDigit);
    view.setUint8(at + 18, Ascii.Minus);
    view.setUint32(at + 19, unused.getUint32(from + 4));
    view.setUint8(at + 19, variantDigits[unused.getUint8(from + 4)]!);
    view.setUint8(at + 23, Ascii.Minus);
    view.setUint32(at + 24, unused.getUint32(from + 8));
    view.setUint32(at + 28, unused.getUint32(from + 12));
    view.setUint32(at + 32, unused.getUint32(from + 16));
  }

  #refill(): void {
    this.#randomFill(this.#entropy);
    this.#digits.write(this.#entropy.toString("hex"), "latin1");
    this.#used = 0;
  }

  #setTime(nowMs: number): void {
    const digits = Math.max(0, Math.trunc(nowMs)).toString(16).padStart(12, "0");
    const text = `${digits.slice(0, 8)}-${digits.slice(8)}-`;
    for (let index = 0; index < text.length; index++)
      this.#time.setUint8(index, text.charCodeAt(index));
    this.#timeMs = nowMs;
  }
}

const versionDigit = "7".charCodeAt(0);
const variantDigits = new Uint8Array(256);
for (const [value, digit] of hexDigits.entries())
  variantDigits[digit] = "89ab".charCodeAt(value & 3);

function viewOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}
