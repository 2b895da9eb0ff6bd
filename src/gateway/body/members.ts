// Splits a compressed body into its members. These are the members of gzip (RFC 1952), the frames
// of Zstandard (RFC 8878), or the single stream of deflate or Brotli. Data after the last complete
// member is ignored, because clients and proxies add padding.

import { crc32 } from "node:zlib";
import { type Coding, hasZlibHeader, looksGzipped } from "./payload-form.ts";

/** A gzip member is decoded as `raw`, without its header and trailer. */
export type MemberForm = "raw" | "zlib" | "br" | "zstd";

export interface Member {
  readonly form: MemberForm;
  readonly start: number;
  readonly end: number | undefined;
}

/**
 * The number is limited because each member needs its own decoder. Files of 64 KiB blocks have up
 * to 1,600 members.
 */
const membersMax = 2_048;

const gzipHeaderBytes = 10;
const gzipTrailerBytes = 8;
const gzipFlag = { headerSum: 2, extra: 4, name: 8, comment: 16, reserved: 0xe0 } as const;
const endOfFile = "unexpected end of file";

const zstdMagic = 0xfd2fb528;
const skippableMagic = 0x184d2a50;
const blockHeaderBytes = 3;
const zstdChecksumBytes = 4;
const rleBlock = 1;
const reservedBlock = 3;
const contentSizeBytes = [0, 2, 4, 8];
const dictionaryIdBytes = [0, 1, 2, 4];

/**
 * The maximum window is 8 MiB, as in RFC 9659. It is limited because a few bytes can request a
 * window of any size.
 */
export const ZSTD_WINDOW_LOG_MAX = 23;
const ZSTD_WINDOW_BYTES_MAX = 2 ** ZSTD_WINDOW_LOG_MAX;

export class Members {
  count = 0;
  readonly #coding: Coding;
  readonly #bytes: Uint8Array;
  #at = 0;
  #start = 0;
  #sum = 0;
  #length = 0;

  constructor(coding: Coding, bytes: Uint8Array) {
    this.#coding = coding;
    this.#bytes = bytes;
  }

  /**
   * Returns the next member, or undefined after the last one. If the body is invalid, returns a
   * text that describes the error. Call `error` for each member before the next call.
   */
  next(): Member | string | undefined {
    const member = this.#next();
    if (typeof member === "string") return this.count === 0 ? member : undefined;
    if (member === undefined) return undefined;
    if (++this.count > membersMax) return `more than ${membersMax} compressed parts`;
    this.#start = member.start;
    this.#sum = 0;
    this.#length = 0;
    return member;
  }

  /** Call this with all decompressed data of the member, in order. */
  inflated(bytes: Uint8Array): void {
    if (this.#coding !== "gzip") return;
    this.#sum = crc32(bytes, this.#sum);
    this.#length += bytes.length;
  }

  error(bytesRead: number): string | undefined {
    if (this.#coding !== "gzip") return undefined;
    this.#at = this.#start + bytesRead;
    const { byteOffset, length } = this.#bytes;
    if (this.#at + gzipTrailerBytes > length) return endOfFile;
    const trailer = new DataView(this.#bytes.buffer, byteOffset + this.#at, gzipTrailerBytes);
    this.#at += gzipTrailerBytes;
    if (trailer.getUint32(0, true) !== this.#sum) return "incorrect data check";
    return trailer.getUint32(4, true) === this.#length >>> 0 ? undefined : "incorrect length check";
  }

  #next(): Member | string | undefined {
    switch (this.#coding) {
      case "gzip":
        return this.#gzipMember();
      case "zstd":
        return this.#zstdMember();
      default:
        return this.#onlyMember();
    }
  }

  #onlyMember(): Member | undefined {
    if (this.count > 0) return undefined;
    const form = this.#coding === "br" ? "br" : hasZlibHeader(this.#bytes) ? "zlib" : "raw";
    return { form, start: 0, end: undefined };
  }

  #gzipMember(): Member | string | undefined {
    const start = gzipDataStart(this.#bytes.subarray(this.#at));
    return typeof start === "string"
      ? start
      : { form: "raw", start: this.#at + start, end: undefined };
  }

  #zstdMember(): Member | string | undefined {
    for (const frame of zstdFrames(this.#bytes, this.#at)) {
      if (typeof frame === "string") return frame;
      this.#at = frame.end;
      if (!frame.isSkippable) return { form: "zstd", start: frame.start, end: frame.end };
    }
    return this.count === 0 ? "incorrect header check" : undefined;
  }
}

function gzipDataStart(bytes: Uint8Array): number | string {
  if (!looksGzipped(bytes)) {
    if (bytes.length >= 2 && (bytes[0] !== 0x1f || bytes[1] !== 0x8b))
      return "incorrect header check";
    return bytes.length < 3 ? endOfFile : "unknown compression method";
  }
  const flags = bytes[3] ?? 0;
  if ((flags & gzipFlag.reserved) !== 0) return "unknown header flags set";
  let at = gzipHeaderBytes;
  if ((flags & gzipFlag.extra) !== 0) at += 2 + ((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8));
  for (const text of [gzipFlag.name, gzipFlag.comment]) {
    if ((flags & text) === 0) continue;
    const end = bytes.indexOf(0, at);
    if (end < 0) return endOfFile;
    at = end + 1;
  }
  if ((flags & gzipFlag.headerSum) !== 0) {
    const sum = crc32(bytes.subarray(0, at)) & 0xffff;
    if (at + 2 <= bytes.length && (bytes[at]! | (bytes[at + 1]! << 8)) !== sum)
      return "header crc mismatch";
    at += 2;
  }
  return at > bytes.length ? endOfFile : at;
}

interface ZstdFrame {
  readonly start: number;
  readonly end: number;
  readonly isSkippable: boolean;
}

/** Reads the block headers, because Node 22 decompresses a truncated frame without an error. */
function* zstdFrames(body: Uint8Array, from: number): Generator<ZstdFrame | string, void, void> {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  let start = from;
  for (let count = 0; count <= membersMax && (start < body.length || start === 0); count++) {
    if (start + 8 > body.length) return yield "unexpected end of data";
    const magic = view.getUint32(start, true);
    const isSkippable = magic >= skippableMagic && magic < skippableMagic + 16;
    if (!isSkippable && magic !== zstdMagic) return yield "incorrect header check";
    const end = isSkippable
      ? start + 8 + view.getUint32(start + 4, true)
      : zstdFrameEnd(body, start);
    if (typeof end === "string") return yield end;
    if (end > body.length) return yield "unexpected end of data";
    yield { start, end, isSkippable };
    start = end;
  }
}

function zstdFrameEnd(body: Uint8Array, start: number): number | string {
  const descriptor = body[start + 4]!;
  const singleSegment = (descriptor & 0x20) !== 0;
  const sizeBytes =
    contentSizeBytes[descriptor >> 6]! + (descriptor >> 6 === 0 && singleSegment ? 1 : 0);
  let at = start + 5 + (singleSegment ? 0 : 1) + dictionaryIdBytes[descriptor & 0x03]! + sizeBytes;
  for (;;) {
    if (at + blockHeaderBytes > body.length) return "unexpected end of data";
    const header = body[at]! | (body[at + 1]! << 8) | (body[at + 2]! << 16);
    const type = (header >> 1) & 0x03;
    if (type === reservedBlock) return "invalid block type";
    at += blockHeaderBytes + (type === rleBlock ? 1 : header >> 3);
    if ((header & 1) === 1) break;
  }
  return (descriptor & 0x04) === 0 ? at : at + zstdChecksumBytes;
}

/**
 * Returns the largest window of a frame, limited to the decoder's maximum (RFC 8878, 3.1.1.1.2).
 */
export function zstdWindowBytes(body: Uint8Array): number {
  let most = 0;
  for (const frame of zstdFrames(body, 0)) {
    const start = typeof frame === "string" ? body.length : frame.start;
    if (typeof frame === "string" && most > 0) break;
    if (typeof frame === "string" || !frame.isSkippable)
      most = Math.max(most, zstdFrameWindow(body, start));
    if (most === ZSTD_WINDOW_BYTES_MAX) break;
  }
  return most;
}

function zstdFrameWindow(body: Uint8Array, start: number): number {
  const descriptor = body[start + 4] ?? 0;
  const window = body[start + 5] ?? 0xff;
  if ((descriptor & 0x20) !== 0) return ZSTD_WINDOW_BYTES_MAX;
  const base = 2 ** (10 + (window >> 3));
  return Math.min(base + (base / 8) * (window & 7), ZSTD_WINDOW_BYTES_MAX);
}
