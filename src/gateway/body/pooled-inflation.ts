// Decompresses one body on the thread pool, one chunk of output per step, so that other bodies can
// run between two steps. The output is limited while it grows. The limit is lower while the body
// has shown no key of a project. A body inflated here may reach the intake after a body that
// arrived later on another connection.

import zlib from "node:zlib";
import type { Problem } from "../../platform/base/errors.ts";
import { BodyBuffer } from "./body-buffer.ts";
import type { BodyMemory } from "./body-memory.ts";
import { invalidEncoding, noRoomToInflate } from "./body-problems.ts";
import type { Coding } from "./codings.ts";
import { brotliWindowBits, inflatedProblem, messageOf, sizeHint, zstdParams } from "./inflate.ts";
import { type Member, type MemberForm, Members, zstdWindowBytes } from "./members.ts";

const OUTPUT_CHUNK_BYTES = 262_144;
const DEFLATE_WINDOW_BYTES = 32_768;

type Decoder = zlib.Inflate | zlib.InflateRaw | zlib.BrotliDecompress | zlib.ZstdDecompress;
/**
 * A decoder with `reset`. All decoders of Node have `reset`, but its declarations omit the method
 * for some.
 */
type ResettableDecoder = Decoder & zlib.ZlibReset;

interface InflationSink {
  /**
   * Returns whether the body contains the key of a project, or the check for keys is off. Called
   * with every chunk.
   */
  isKnown(): boolean;
  /** Receives the first bytes of the inflated body, which are valid during the call only. */
  begun(bytes: Buffer): void;
  /**
   * Reserves room in the budget for the bytes just inflated. If it returns false, the work ends
   * with `overloaded`.
   */
  hold(bytes: number): boolean;
  /**
   * Reports that the pool no longer reads the compressed body, so the caller owns its memory again.
   * Called once before `done`, and also after a cancellation.
   */
  left(): void;
  /**
   * Receives the result, whose buffer the caller owns. Called once, unless the inflation is
   * cancelled.
   */
  done(result: BodyBuffer | Problem): void;
}

interface InflationOptions {
  readonly bytesMax: number;
  readonly memory: BodyMemory;
  readonly sink: InflationSink;
}

export class PooledInflation {
  /** Estimated bytes of the decoder's window and output. */
  readonly memoryBytes: number;
  readonly #coding: Coding;
  readonly #compressed: Buffer;
  readonly #bytesMax: number;
  readonly #sink: InflationSink;
  readonly #inflated: BodyBuffer;
  readonly #bytesExpected: number;
  readonly #members: Members;
  /** The member that the next step begins; undefined before the first member. */
  #next: Member | string | undefined;
  /** Number of bytes inflated before the current member. */
  #lengthBefore = 0;
  #stream: Decoder | undefined;
  #yielded: () => void = () => {};
  /**
   * State of the inflation: resting ◄─► working ─► over. While it is working, a chunk is on the
   * pool and cannot be cancelled. If it is cancelled while resting, it is over immediately.
   */
  #state: "resting" | "working" | "over" = "resting";
  #isCancelled = false;

  /** Creates an inflation. `compressed` must not change until `left` is called. */
  constructor(coding: Coding, compressed: Buffer, { bytesMax, memory, sink }: InflationOptions) {
    this.#coding = coding;
    this.#compressed = compressed;
    this.#bytesMax = bytesMax;
    this.#sink = sink;
    const hint = sizeHint(coding, compressed);
    this.#members = new Members(coding, compressed);
    this.#inflated = new BodyBuffer(memory, hint);
    this.#bytesExpected = Math.max(hint ?? 0, compressed.length);
    this.memoryBytes = windowBytes(coding, compressed) + 2 * OUTPUT_CHUNK_BYTES;
  }

  /**
   * Estimated bytes of work that are left: the greater of the claimed size and the compressed size,
   * minus the inflated length. If the inflated length exceeds that size, the body is assumed to be
   * half done.
   */
  get bytesLeft(): number {
    const { length } = this.#inflated;
    return length < this.#bytesExpected ? this.#bytesExpected - length : length;
  }

  /**
   * Inflates a chunk, and calls `yielded` if there is more data. Must not be called again before
   * `yielded` is called.
   */
  step(yielded: () => void): void {
    if (this.#state !== "resting") return;
    this.#state = "working";
    this.#yielded = yielded;
    if (this.#stream === undefined) this.#begin();
    else this.#takeChunks(this.#stream);
  }

  /**
   * Cancels the inflation. Waits for a chunk that is on the pool, so that the pool never has more
   * chunks than the queue has slots.
   */
  cancel(): void {
    if (this.#state === "over" || this.#isCancelled) return;
    this.#isCancelled = true;
    this.#inflated.free();
    if (this.#state === "resting") this.#finish();
  }

  #begin(): void {
    const member = this.#next ?? this.#members.next();
    if (member === undefined || typeof member === "string") {
      setImmediate(() => this.#finish(invalidEncoding(this.#coding, member ?? "no data")));
      return;
    }
    this.#lengthBefore = this.#inflated.length;
    const stream = createStream(member.form);
    this.#stream = stream;
    stream.on("readable", () => this.#readable(stream));
    stream.on("error", (error) => this.#memberEnded(stream, messageOf(error)));
    stream.on("end", () => this.#memberEnded(stream, this.#members.error(stream.bytesWritten)));
    stream.end(this.#compressed.subarray(member.start, member.end));
  }

  /**
   * Continues with the next member or finishes. An error in a member after the first one is not an
   * error of the body: such bytes are padding.
   */
  #memberEnded(stream: Decoder, error: string | undefined): void {
    if (this.#stream !== stream) return;
    if (this.#isCancelled) {
      this.#finish();
      return;
    }
    if (error !== undefined && this.#members.count === 1) {
      this.#finish(invalidEncoding(this.#coding, error));
      return;
    }
    if (error !== undefined) this.#inflated.shorten(this.#lengthBefore);
    const next = error === undefined ? this.#members.next() : undefined;
    if (next === undefined) {
      this.#finish(this.#inflated);
      return;
    }
    this.#freeDecoder();
    this.#next = next;
    this.#state = "resting";
    this.#yielded();
  }

  /**
   * Handles output that is ready. No chunk is on the pool at this point; reading the output begins
   * the next chunk.
   */
  #readable(stream: Decoder): void {
    if (this.#state !== "working" || this.#stream !== stream) return;
    if (this.#isCancelled) this.#finish();
    else if (stream.readableLength < OUTPUT_CHUNK_BYTES || stream.readableEnded)
      this.#takeChunks(stream);
    else {
      this.#state = "resting";
      this.#yielded();
    }
  }

  /** Reads the available output, which makes the pool begin the next chunk, if any. */
  #takeChunks(stream: Decoder): void {
    // The limits are checked before the chunk is read, because reading begins the next one.
    const problem = this.#problemOf(stream.readableLength);
    if (problem !== undefined) {
      this.#finish(problem);
      return;
    }
    const chunk = stream.read() as Buffer | null;
    if (chunk === null) return;
    const isFirst = this.#inflated.length === 0;
    this.#inflated.append(chunk);
    this.#members.inflated(chunk);
    if (isFirst) this.#sink.begun(chunk);
    // No other code uses the memory of a full chunk, so it is freed here. Otherwise the chunks of
    // some bodies of a mebibyte would trigger the garbage collector ten times a second.
    const { buffer } = chunk;
    if (
      chunk.length === OUTPUT_CHUNK_BYTES &&
      buffer instanceof ArrayBuffer &&
      buffer.byteLength === chunk.length
    ) {
      buffer.transfer(0);
    }
  }

  #problemOf(bytes: number): Problem | undefined {
    const length = this.#inflated.length + bytes;
    const sent = this.#compressed.length;
    const problem = inflatedProblem({
      length,
      sent,
      bytesMax: this.#bytesMax,
      isKnown: this.#sink.isKnown(),
    });
    if (problem !== undefined) return problem;
    if (bytes === 0 || this.#sink.hold(bytes)) return undefined;
    return noRoomToInflate;
  }

  /** Ends the inflation. Must be called between two chunks, when no chunk is on the pool. */
  #finish(result?: BodyBuffer | Problem): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#freeDecoder();
    if (result !== this.#inflated) this.#inflated.free();
    this.#sink.left();
    if (result !== undefined && !this.#isCancelled) this.#sink.done(result);
  }

  /**
   * Ends the stream, and frees its decoder's window. Node frees a zstd window only together with
   * the stream's object, when the garbage collector reaches it, and does not report its size to the
   * collector: 180 bodies with windows of 8 MiB used 970 MB. A reset replaces the decoder by a new
   * one without a window. The reset throws if an error has closed the stream, or if the pool still
   * writes the last piece. Then an allocation of the window's size, which is never written to,
   * informs the collector.
   */
  #freeDecoder(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    if (this.#coding === "zstd") {
      try {
        (stream as ResettableDecoder).reset();
      } catch {
        Buffer.allocUnsafeSlow(this.memoryBytes);
      }
    }
    stream.destroy();
  }
}

function createStream(form: MemberForm): Decoder {
  const options = { chunkSize: OUTPUT_CHUNK_BYTES };
  switch (form) {
    case "raw":
      return zlib.createInflateRaw(options);
    case "zlib":
      return zlib.createInflate(options);
    case "br":
      return zlib.createBrotliDecompress(options);
    case "zstd":
      return zlib.createZstdDecompress({ ...options, params: zstdParams });
  }
}

function windowBytes(coding: Coding, compressed: Buffer): number {
  switch (coding) {
    case "gzip":
    case "deflate":
      return DEFLATE_WINDOW_BYTES;
    case "br":
      return 2 ** brotliWindowBits(compressed[0]!);
    case "zstd":
      return zstdWindowBytes(compressed);
  }
}
