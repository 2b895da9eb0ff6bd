// Decompresses bodies, bounded while it inflates. Small ones at once, on the event loop, because a trip to the thread
// pool costs more than the work; the rest on the pool. A small body that turns out large changes over to the pool.
// A body inflated on the pool can reach the intake after one that arrived later, from another connection.

import zlib from "node:zlib";
import type { Problem } from "../errors.ts";
import { BodyBuffer } from "./body-buffer.ts";
import type { BodyMemory } from "./body-memory.ts";
import { type Coding, hasZlibHeader } from "./content-encoding.ts";
import { zstdFrameFault } from "./zstd-frame.ts";

/** Largest body, compressed, that is tried on the event loop. */
export const atOnceBytesMax = 65_536;
/** Largest result of that: about a third of a millisecond of gzip. */
export const atOnceInflatedBytesMax = 262_144;

/** A Brotli decoder fills its window before it gives out a byte: 300 bytes with a window of 16 MiB take it 60 ms. */
const AT_ONCE_WINDOW_BITS_MAX = 18;

const OUTPUT_CHUNK_BYTES = 262_144;
const GZIP_TRAILER_BYTES = 8;
/** RFC 9659: over HTTP, a zstd window is at most 8 MiB. Without this a few bytes make the decoder ask for 128. */
const ZSTD_WINDOW_LOG_MAX = 23;

/**
 * Up to here a body may inflate whatever it was; past it, to so many times what was sent: as far as deflate can go. Brotli and
 * zstd go a hundred times as far, and then 77 bytes keep a thread busy for a second. Events that differ in their ids or times
 * come to 10 to 200 times, all equal ones to 10,000 and more.
 */
const FREE_OF_RATIO_BYTES = 8_388_608;
const RATIO_MAX = 1_032;

interface BufferWithEngine {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

export interface InflateSink {
  /** Asks for room in the budget for bytes just inflated; false stops the work with `overloaded`. */
  hold(bytes: number): boolean;
  /** Called once, cancelled or not, before `done`: the pool has done with the body, and reads nothing of it any more. */
  left(): void;
  /** Called once unless cancelled. The buffer is the caller's. */
  done(result: BodyBuffer | Problem): void;
}

/**
 * Inflates a body now. `compressed` is only read during the call.
 * Undefined: it is more than should be done on the event loop, use `inflateOnPool`.
 */
export function inflateAtOnce(coding: Coding, compressed: Uint8Array, bytesMax: number): Buffer | Problem | undefined {
  if (compressed.length > atOnceBytesMax) return undefined;
  if (coding === "br" && brotliWindowBits(compressed[0]!) > AT_ONCE_WINDOW_BITS_MAX) return undefined;
  const hint = sizeHint(coding, compressed);
  const outputMax = Math.min(bytesMax, atOnceInflatedBytesMax);
  if (hint !== undefined && hint > outputMax && bytesMax > outputMax) return undefined;
  const fault = coding === "zstd" ? zstdFrameFault(compressed) : undefined;
  if (fault !== undefined) return invalidEncoding(coding, fault);
  try {
    // The size told, and some: one piece of output, which need not be put together from several.
    const chunkSize = hint === undefined ? 16_384 : Math.min(hint, outputMax) + 64;
    const { buffer, engine } = inflateSync(coding, compressed, { maxOutputLength: outputMax, chunkSize, info: true });
    if (engine.bytesWritten !== compressed.length) return invalidEncoding(coding, "more data after the end");
    return buffer;
  } catch (error) {
    if (codeOf(error) !== "ERR_BUFFER_TOO_LARGE") return invalidEncoding(coding, messageOf(error));
    return bytesMax > outputMax ? undefined : inflatedTooLarge(bytesMax);
  }
}

/**
 * Inflates a body on the thread pool. `compressed` must stay as it is until `left`. Answers how to cancel: what is in work on
 * the pool, a chunk of output, cannot be called back, and is waited for, so that no more of them queue there than have a turn.
 */
export function inflateOnPool(
  coding: Coding,
  compressed: Buffer,
  options: { readonly bytesMax: number; readonly memory: BodyMemory; readonly sink: InflateSink },
): () => void {
  const { bytesMax, memory, sink } = options;
  const fault = coding === "zstd" ? zstdFrameFault(compressed) : undefined;
  const stream = createStream(coding, compressed);
  const inflated = new BodyBuffer(memory, sizeHint(coding, compressed));
  const outputMax = Math.min(bytesMax, Math.max(FREE_OF_RATIO_BYTES, RATIO_MAX * compressed.length));
  let state: "running" | "cancelled" | "over" = "running";
  // Called between two chunks only: nothing is in work on the pool then.
  const finish = (result?: BodyBuffer | Problem): void => {
    if (state === "over") return;
    const isCancelled = state === "cancelled";
    state = "over";
    stream.destroy();
    if (result !== inflated) inflated.free();
    sink.left();
    if (result !== undefined && !isCancelled) sink.done(result);
  };
  const cancel = (): void => {
    if (state !== "running") return;
    state = "cancelled";
    inflated.free();
  };
  stream.on("data", (chunk: Buffer) => {
    if (state !== "running") return finish();
    const length = inflated.length + chunk.length;
    if (length > outputMax) return finish(outputMax < bytesMax ? inflatedTooFar : inflatedTooLarge(bytesMax));
    if (!sink.hold(chunk.length)) return finish({ code: "overloaded", detail: "No room to decompress the body" });
    inflated.append(chunk);
  });
  stream.on("error", (error) => finish(invalidEncoding(coding, messageOf(error))));
  stream.on("end", () => {
    if (stream.bytesWritten !== compressed.length) finish(invalidEncoding(coding, "more data after the end"));
    else finish(inflated);
  });
  if (fault !== undefined) setImmediate(finish, invalidEncoding(coding, fault));
  else stream.end(compressed);
  return cancel;
}

type SyncOptions = { maxOutputLength: number; chunkSize: number; info: true };

/** With `info: true` Node answers buffer and engine; its declarations say only the buffer. */
function inflateSync(coding: Coding, bytes: Uint8Array, options: SyncOptions): BufferWithEngine {
  return call() as unknown as BufferWithEngine;

  function call(): Buffer {
    switch (coding) {
      case "gzip":
        return zlib.gunzipSync(bytes, options);
      case "deflate":
        return hasZlibHeader(bytes) ? zlib.inflateSync(bytes, options) : zlib.inflateRawSync(bytes, options);
      case "br":
        return zlib.brotliDecompressSync(bytes, options);
      case "zstd":
        return zlib.zstdDecompressSync(bytes, { ...options, params: zstdParams });
    }
  }
}

const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };

function createStream(coding: Coding, bytes: Uint8Array): zlib.Gunzip | zlib.BrotliDecompress | zlib.ZstdDecompress {
  const options = { chunkSize: OUTPUT_CHUNK_BYTES };
  switch (coding) {
    case "gzip":
      return zlib.createGunzip(options);
    case "deflate":
      return hasZlibHeader(bytes) ? zlib.createInflate(options) : zlib.createInflateRaw(options);
    case "br":
      return zlib.createBrotliDecompress(options);
    case "zstd":
      return zlib.createZstdDecompress({ ...options, params: zstdParams });
  }
}

/** Base-2 logarithm of the window that a Brotli stream asks for in its first byte. RFC 7932, section 9.1. */
function brotliWindowBits(first: number): number {
  if ((first & 1) === 0) return 16;
  const high = (first >> 1) & 7;
  if (high !== 0) return 17 + high;
  const low = (first >> 4) & 7;
  return low === 0 ? 17 : 8 + low;
}

/** The size a gzip trailer claims. A hint: it may lie, and counts modulo 2^32. */
function sizeHint(coding: Coding, bytes: Uint8Array): number | undefined {
  if (coding !== "gzip" || bytes.length < GZIP_TRAILER_BYTES) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(bytes.length - 4, true);
}

const inflatedTooFar: Problem = {
  code: "inflated_too_large",
  detail: `More than ${FREE_OF_RATIO_BYTES} bytes after decompression, and more than ${RATIO_MAX} times what was sent`,
};

function inflatedTooLarge(bytesMax: number): Problem {
  return { code: "inflated_too_large", detail: `More than ${bytesMax} bytes after decompression` };
}

function invalidEncoding(coding: Coding, fault: string): Problem {
  return { code: "invalid_encoding", detail: `Decompress the body as ${coding}: ${fault}` };
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "failed";
}
