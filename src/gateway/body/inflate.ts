// Decompresses small bodies on the event loop, because the thread pool would take longer than the
// work. The output is limited while it grows. Larger bodies, including those whose output exceeds
// the limit, go to the pool: see pooled-inflation.ts.

import zlib from "node:zlib";
import type { Problem } from "../../platform/base/errors.ts";
import { inflatedTooLarge, invalidEncoding } from "./body-problems.ts";
import { type Coding, hasZlibHeader } from "./codings.ts";
import { type Member, type MemberForm, Members, ZSTD_WINDOW_LOG_MAX } from "./members.ts";

/** Maximum bytes of a compressed body that is inflated on the event loop. */
export const atOnceBytesMax = 65_536;
/** Maximum bytes that a body is inflated to on the event loop. `WORK_PER_MS` states the time. */
export const atOnceInflatedBytesMax = 262_144;

/**
 * Maximum base-2 logarithm of the window of a Brotli body that is inflated on the event loop. The
 * decoder fills its window before it returns a byte: for 300 bytes with a window of 16 MiB this
 * takes 60 ms.
 */
const AT_ONCE_WINDOW_BITS_MAX = 18;

/**
 * Maximum number of members of a body that is inflated on the event loop, because each member needs
 * a decoder.
 */
const AT_ONCE_MEMBERS_MAX = 8;

const GZIP_TRAILER_BYTES = 8;
const CHUNK_BYTES_MIN = 16_384;

/**
 * Number of bytes of output that a byte read counts as. If events do not compress to less than a
 * quarter of their size, the bytes read determine the time.
 */
const WORK_PER_BYTE_READ = 4;
/**
 * Number of bytes of output that a millisecond counts as: 256 KiB of events take 0.75 ms. Measured
 * with gzip, on events that compress to a quarter: 0.7 to 0.9 ms.
 */
export const WORK_PER_MS = 349_525;

interface Inflated {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  readonly ms: number;
}

/**
 * Returns the work of an inflation in bytes of output. The work exceeds the written bytes if the
 * inflation read much or took long. For example, 64 KiB of empty deflate blocks inflate to nothing,
 * and take ten milliseconds if each block has its own Huffman tables.
 */
export function workOf({ bytesRead, bytesWritten, ms }: Inflated): number {
  return Math.max(bytesWritten, bytesRead * WORK_PER_BYTE_READ, Math.ceil(ms * WORK_PER_MS));
}

/** Maximum ratio of deflate. */
const DEFLATE_RATIO_MAX = 1_032;
/**
 * Maximum bytes that a body may inflate to at any ratio. Above this size the ratio is limited to
 * `DEFLATE_RATIO_MAX`. Brotli, zstd and lz64 can reach a hundred times that ratio: 77 bytes then
 * keep a thread busy for a second. Events that differ in their ids or times reach a ratio of 10 to
 * 200, equal events 10,000 and more.
 */
const FREE_OF_RATIO_BYTES = 8_388_608;
/**
 * Maximum ratio of a body whose first bytes show no project. Events that differ in their ids or
 * times do not exceed this ratio.
 */
const UNKNOWN_RATIO_MAX = 200;
/**
 * Number of compressed bytes that a peek inflates. `peekedBytesMin` (384) are enough for a key
 * before the events, `peekedFarBytes` (1,000) for a key after a browser's own data.
 */
export const peekedBytesMin = 384;
export const peekedFarBytes = 1_000;
/**
 * Numbers of compressed bytes that a peek tries to inflate, in order. If events are nearly equal,
 * the first number inflates to too much. Then fewer bytes are tried, which still contain the key.
 */
const peekedBytes = [peekedFarBytes, peekedBytesMin, 112];
export const peekedInflatedBytesMax = 16_384;

interface BufferWithEngine {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/**
 * Inflates a body on the event loop. Returns undefined if the event loop has no time for the body.
 * `compressed` is only read during the call.
 */
export function inflateAtOnce(
  coding: Coding,
  compressed: Uint8Array,
  bytesMax: number,
): Buffer | Problem | undefined {
  if (compressed.length > atOnceBytesMax) return undefined;
  if (coding === "br" && brotliWindowBits(compressed[0]!) > AT_ONCE_WINDOW_BITS_MAX)
    return undefined;
  const hint = sizeHint(coding, compressed);
  const outputMax = Math.min(bytesMax, atOnceInflatedBytesMax);
  if (hint !== undefined && hint > outputMax && bytesMax > outputMax) return undefined;
  // A chunk is a little larger than the size in the trailer, so that the output is one piece and is
  // not joined. If that size is wrong, the output is a few pieces.
  const chunkSize = Math.max(Math.min(hint ?? 0, outputMax) + 64, CHUNK_BYTES_MIN);
  const members = new Members(coding, compressed);
  const parts: Buffer[] = [];
  let length = 0;
  for (let member = members.next(); member !== undefined; member = members.next()) {
    if (typeof member === "string") return invalidEncoding(coding, member);
    if (members.count > AT_ONCE_MEMBERS_MAX) return undefined;
    const part = inflateMember(member, compressed, { chunkSize, outputMax, members });
    if (typeof part !== "string") {
      length += part.length;
      parts.push(part);
    }
    if (part === tooLarge || length > outputMax)
      return bytesMax > outputMax ? undefined : inflatedTooLarge(bytesMax);
    if (typeof part !== "string") continue;
    if (members.count === 1) return invalidEncoding(coding, part);
    break;
  }
  return parts.length === 1 ? parts[0] : Buffer.concat(parts, length);
}

const tooLarge = "too large";

interface MemberOptions {
  readonly members: Members;
  readonly outputMax: number;
  readonly chunkSize: number;
}

/** Returns the inflated member, its error, or `tooLarge`. */
function inflateMember(
  { form, start, end }: Member,
  compressed: Uint8Array,
  { members, outputMax, chunkSize }: MemberOptions,
): Buffer | string {
  try {
    const { buffer, engine } = inflateSync(form, compressed.subarray(start, end), {
      maxOutputLength: outputMax,
      chunkSize,
      params: form === "zstd" ? zstdParams : undefined,
      info: true,
    });
    members.inflated(buffer);
    return members.error(engine.bytesWritten) ?? buffer;
  } catch (error) {
    return codeOf(error) === "ERR_BUFFER_TOO_LARGE" ? tooLarge : messageOf(error);
  }
}

/**
 * Returns the first bytes of a body inflated for a peek: enough to show a key at the beginning of
 * an SDK's body. Returns no bytes for Brotli and zstd, or if the bytes are invalid or inflate to
 * too much.
 */
export function inflateStart(coding: Coding, compressed: Uint8Array): Buffer {
  if (coding !== "gzip" && coding !== "deflate") return Buffer.alloc(0);
  const [finishFlush, chunkSize] = [zlib.constants.Z_SYNC_FLUSH, peekedInflatedBytesMax];
  for (const [number, bytes] of peekedBytes.entries()) {
    // The next number is smaller, and still covers the whole body.
    if (compressed.length <= (peekedBytes[number + 1] ?? 0)) continue;
    const start = compressed.subarray(0, bytes);
    try {
      const form = coding === "gzip" || hasZlibHeader(start) ? coding : "raw";
      return inflateSync(form, start, {
        finishFlush,
        chunkSize,
        maxOutputLength: chunkSize,
        info: true,
      }).buffer;
    } catch (error) {
      if (codeOf(error) !== "ERR_BUFFER_TOO_LARGE") break;
    }
  }
  return Buffer.alloc(0);
}

interface SyncOptions {
  readonly maxOutputLength: number;
  readonly chunkSize: number;
  readonly finishFlush?: number;
  readonly params?: zlib.ZstdOptions["params"] | undefined;
  readonly info: true;
}

/**
 * Inflates bytes with node:zlib. With `info: true` Node returns buffer and engine; its declarations
 * have only the buffer.
 */
function inflateSync(
  form: Coding | MemberForm,
  bytes: Uint8Array,
  options: SyncOptions,
): BufferWithEngine {
  return call() as unknown as BufferWithEngine;

  function call(): Buffer {
    switch (form) {
      case "gzip":
        return zlib.gunzipSync(bytes, options);
      case "raw":
        return zlib.inflateRawSync(bytes, options);
      case "deflate":
      case "zlib":
        return zlib.inflateSync(bytes, options);
      case "br":
        return zlib.brotliDecompressSync(bytes, options);
      case "zstd":
        return zlib.zstdDecompressSync(bytes, options);
    }
  }
}

export const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };

/**
 * Returns the base-2 logarithm of the window that a Brotli stream requests in its first byte. RFC
 * 7932, section 9.1.
 */
export function brotliWindowBits(first: number): number {
  if ((first & 1) === 0) return 16;
  const high = (first >> 1) & 7;
  if (high !== 0) return 17 + high;
  const low = (first >> 4) & 7;
  return low === 0 ? 17 : 8 + low;
}

/**
 * Returns the size in a gzip trailer, modulo 2^32; undefined for other codings. It is only a hint,
 * because it may be false.
 */
export function sizeHint(coding: Coding, bytes: Uint8Array): number | undefined {
  if (coding !== "gzip" || bytes.length < GZIP_TRAILER_BYTES) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(
    bytes.length - 4,
    true,
  );
}

interface InflatedSize {
  readonly length: number;
  /** Number of compressed bytes of the body. */
  readonly sent: number;
  readonly bytesMax: number;
  /** Whether the body contains the key of a project, or the check for keys is off. */
  readonly isKnown: boolean;
}

/** Returns the problem of a body that has inflated to more than is allowed, if any. */
export function inflatedProblem({
  length,
  sent,
  bytesMax,
  isKnown,
}: InflatedSize): Problem | undefined {
  if (length > bytesMax) return inflatedTooLarge(bytesMax);
  const ratioMax = isKnown ? DEFLATE_RATIO_MAX : UNKNOWN_RATIO_MAX;
  if (length <= FREE_OF_RATIO_BYTES || length <= ratioMax * sent) return undefined;
  const unknown = isKnown ? "" : ", and no api_key of a project in its first bytes";
  return {
    code: "inflated_too_large",
    detail: `More than ${FREE_OF_RATIO_BYTES} bytes after decompression, and more than ${ratioMax} times the bytes sent${unknown}`,
  };
}

/**
 * Returns the maximum number of bytes that `sent` bytes may inflate to, with or without a project's
 * key.
 */
export function inflatedBytesAtMost(sent: number, bytesMax: number): number {
  return Math.min(bytesMax, Math.max(FREE_OF_RATIO_BYTES, DEFLATE_RATIO_MAX * sent));
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "failed";
}
