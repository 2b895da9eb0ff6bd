// Decompresses small bodies on the event loop, because the thread pool would take longer than the
// decompression itself. `pooled-inflation.ts` decompresses all other bodies.

import { Buffer } from "node:buffer";
import zlib from "node:zlib";
import type { Problem } from "../../platform/base/errors.ts";
import type { TurnBudget } from "../../platform/base/turn-budget.ts";
import { inflatedTooLarge, invalidEncoding } from "./body-problems.ts";
import { type Member, type MemberForm, Members, ZSTD_WINDOW_LOG_MAX } from "./members.ts";
import { type Coding, hasZlibHeader } from "./payload-form.ts";

export const atOnceBytesMax = 65_536;
export const atOnceInflatedBytesMax = 262_144;

/** Filling a Brotli window of 16 MiB takes 60 ms, too long for the event loop. */
const AT_ONCE_WINDOW_BITS_MAX = 18;

const AT_ONCE_MEMBERS_MAX = 8;

const GZIP_TRAILER_BYTES = 8;
const CHUNK_BYTES_MIN = 16_384;

/** Reading one byte takes as long as writing this number of bytes. */
const WORK_PER_BYTE_READ = 4;
/**
 * The number of output bytes per millisecond. It was measured with gzip, which takes 0.75 ms to
 * decompress 256 KiB of events.
 */
export const WORK_PER_MS = 349_525;

/**
 * Returns the work of a decompression, measured in output bytes. It includes the time taken,
 * because some bodies have almost no output.
 */
export function workOf(ms: number, bytesRead = 0, bytesWritten = 0): number {
  return Math.max(bytesWritten, bytesRead * WORK_PER_BYTE_READ, Math.ceil(ms * WORK_PER_MS));
}

const DEFLATE_RATIO_MAX = 1_032;
/**
 * Above this size, the compression ratio must not exceed the maximum of deflate. Brotli, zstd and
 * lz64 can reach a hundred times that ratio.
 */
const FREE_OF_RATIO_BYTES = 8_388_608;
/** Events that have different ids reach compression ratios of 10 to 200. */
const UNKNOWN_RATIO_MAX = 200;
/** This number of compressed bytes is enough to find a key before the events. */
export const peekedBytesMin = 384;
/** This number of compressed bytes is enough to find a key after the properties of a browser. */
export const peekedFarBytes = 1_000;
const peekedBytes = [peekedFarBytes, peekedBytesMin, 112];
export const peekedInflatedBytesMax = 16_384;

interface BufferWithEngine {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

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
  // The additional bytes ensure that the output is a single piece.
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

export function inflateStart(coding: Coding, compressed: Uint8Array): Buffer {
  if (coding !== "gzip" && coding !== "deflate") return Buffer.alloc(0);
  const [finishFlush, chunkSize] = [zlib.constants.Z_SYNC_FLUSH, peekedInflatedBytesMax];
  for (const [number, bytes] of peekedBytes.entries()) {
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

const inflaters = {
  gzip: "gunzipSync",
  raw: "inflateRawSync",
  deflate: "inflateSync",
  zlib: "inflateSync",
  br: "brotliDecompressSync",
  zstd: "zstdDecompressSync",
} as const satisfies Record<Coding | MemberForm, keyof typeof zlib>;

function inflateSync(
  form: Coding | MemberForm,
  bytes: Uint8Array,
  options: SyncOptions,
): BufferWithEngine {
  return zlib[inflaters[form]](bytes, options) as unknown as BufferWithEngine;
}

export const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };

/** Returns the base-2 logarithm of the window size of a Brotli stream (RFC 7932, section 9.1). */
export function brotliWindowBits(first: number): number {
  if ((first & 1) === 0) return 16;
  const high = (first >> 1) & 7;
  if (high !== 0) return 17 + high;
  const low = (first >> 4) & 7;
  return low === 0 ? 17 : 8 + low;
}

/** Returns the decompressed size that a gzip trailer declares. The size may be wrong. */
export function sizeHint(coding: Coding, bytes: Uint8Array): number | undefined {
  if (coding !== "gzip" || bytes.length < GZIP_TRAILER_BYTES) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(
    bytes.length - 4,
    true,
  );
}

interface InflatedSize {
  readonly length: number;
  readonly sent: number;
  readonly bytesMax: number;
  readonly isKnown: boolean;
}

export function inflatedProblem(body: InflatedSize): Problem | undefined {
  const { length, sent, bytesMax, isKnown } = body;
  if (length > bytesMax) return inflatedTooLarge(bytesMax);
  const ratioMax = isKnown ? DEFLATE_RATIO_MAX : UNKNOWN_RATIO_MAX;
  if (length <= FREE_OF_RATIO_BYTES || length <= ratioMax * sent) return undefined;
  const unknown = isKnown ? "" : ", and no api_key of a project in its first bytes";
  return {
    code: "inflated_too_large",
    detail: `The body has more than ${FREE_OF_RATIO_BYTES} bytes after decompression, and more than ${ratioMax} times the bytes sent${unknown}`,
  };
}

export function inflatedBytesAtMost(sent: number, bytesMax: number): number {
  return Math.min(bytesMax, Math.max(FREE_OF_RATIO_BYTES, DEFLATE_RATIO_MAX * sent));
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "failed";
}

interface AtOnceInflationOptions {
  readonly inflatedBytesMax: number;
  readonly monotonicMs: () => number;
  readonly budget: TurnBudget;
  readonly inflater: QuickInflater | undefined;
}

export class AtOnceInflation {
  readonly #options: AtOnceInflationOptions;
  readonly #quick: QuickInflation | undefined;

  constructor(options: AtOnceInflationOptions) {
    const { inflater, inflatedBytesMax } = options;
    this.#options = options;
    this.#quick = inflater && new QuickInflation(inflater, inflatedBytesMax);
  }

  /**
   * Decompresses a body into memory that the next call reuses. Returns undefined if the body is too
   * large for the event loop, or if this iteration has no time left.
   */
  inflate(coding: Coding, bytes: Buffer): Buffer | Problem | undefined {
    const { budget, inflatedBytesMax, monotonicMs } = this.#options;
    if (budget.isSpent) return undefined;
    const startedMs = monotonicMs();
    const result =
      this.#quick?.inflated(coding, bytes) ?? inflateAtOnce(coding, bytes, inflatedBytesMax);
    const ms = monotonicMs() - startedMs;
    if (result === undefined) budget.spend(workOf(ms));
    // A failed decompression may have written up to the maximum size.
    else if (Buffer.isBuffer(result)) budget.spend(workOf(ms, bytes.length, result.length));
    else budget.spend(workOf(ms, bytes.length, atOnceInflatedBytesMax));
    return result;
  }
}

export interface QuickInflater {
  /**
   * Returns -1 if the body is invalid or too long, or if data follows its end. `windowBits` is
   * explained in `zlib.h`.
   */
  inflate(body: Uint8Array, output: Uint8Array, windowBits: number): number;
}

const windowBitsMax = 15;
const gzipBits = 16;

/**
 * Decompresses into the same memory every time. With `node:zlib`, each body would leave garbage,
 * and V8 would stop for 5 to 15 ms to collect it.
 */
export class QuickInflation {
  readonly #inflater: QuickInflater;
  readonly #output: Buffer;

  constructor(inflater: QuickInflater, bytesMax: number) {
    this.#inflater = inflater;
    this.#output = Buffer.allocUnsafeSlow(Math.min(bytesMax, atOnceInflatedBytesMax));
  }

  inflated(coding: Coding, compressed: Uint8Array): Buffer | undefined {
    if (compressed.length > atOnceBytesMax || (coding !== "gzip" && coding !== "deflate"))
      return undefined;
    if ((sizeHint(coding, compressed) ?? 0) > this.#output.length) return undefined;
    const bytes = this.#inflater.inflate(
      compressed,
      this.#output,
      windowBitsOf(coding, compressed),
    );
    return bytes < 0 ? undefined : this.#output.subarray(0, bytes);
  }
}

function windowBitsOf(coding: Coding, compressed: Uint8Array): number {
  if (coding === "gzip") return windowBitsMax + gzipBits;
  return hasZlibHeader(compressed) ? windowBitsMax : -windowBitsMax;
}
