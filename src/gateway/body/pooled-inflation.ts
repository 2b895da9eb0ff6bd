// Decompresses bodies on the thread pool, one chunk of output per step. Projects take turns. Within
// a project, the shortest body is first. Bodies without a project's key take turns by address, and
// can never use the whole pool.

import zlib from "node:zlib";
import type { Problem } from "../../platform/base/errors.ts";
import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";
import { BodyBuffer, type BodyMemory } from "./body-buffer.ts";
import { invalidEncoding, noRoomToInflate } from "./body-problems.ts";
import { brotliWindowBits, inflatedProblem, messageOf, sizeHint, zstdParams } from "./inflate.ts";
import { type Member, type MemberForm, Members, zstdWindowBytes } from "./members.ts";
import type { Coding } from "./payload-form.ts";

const OUTPUT_CHUNK_BYTES = 262_144;
const DEFLATE_WINDOW_BYTES = 32_768;

type Decoder = zlib.Inflate | zlib.InflateRaw | zlib.BrotliDecompress | zlib.ZstdDecompress;
type ResettableDecoder = Decoder & zlib.ZlibReset;

interface InflationSink {
  isKnown(): boolean;
  /** Called with the first decompressed bytes. They are valid only during the call. */
  begun(bytes: Buffer): void;
  hold(bytes: number): boolean;
  /** Called once when the thread pool no longer reads the body: before `done` or after `cancel`. */
  left(): void;
  /** Called once with the result, unless cancelled. The receiver owns the result. */
  done(result: BodyBuffer | Problem): void;
}

interface InflationOptions {
  readonly bytesMax: number;
  readonly memory: BodyMemory;
  readonly sink: InflationSink;
}

export class PooledInflation {
  readonly memoryBytes: number;
  readonly #coding: Coding;
  readonly #compressed: Buffer;
  readonly #bytesMax: number;
  readonly #sink: InflationSink;
  readonly #inflated: BodyBuffer;
  readonly #bytesExpected: number;
  readonly #members: Members;
  #next: Member | string | undefined;
  #lengthBefore = 0;
  #stream: Decoder | undefined;
  #yielded: () => void = () => {};
  /** In the state `working`, the thread pool processes a chunk, which cannot be cancelled. */
  #state: "resting" | "working" | "over" = "resting";
  #isCancelled = false;

  /** `compressed` must not change until `left` has been called. */
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

  get bytesLeft(): number {
    const { length } = this.#inflated;
    return length < this.#bytesExpected ? this.#bytesExpected - length : length;
  }

  /**
   * Decompresses one chunk. If there is more data, calls `yielded`. Only then call `step` again.
   */
  step(yielded: () => void): void {
    if (this.#state !== "resting") return;
    this.#state = "working";
    this.#yielded = yielded;
    if (this.#stream === undefined) this.#begin();
    else this.#takeChunks(this.#stream);
  }

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

  /** Invalid data after the first member is padding, so it is not an error. */
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

  #takeChunks(stream: Decoder): void {
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
    // The chunk is freed immediately. Otherwise, a few bodies of 1 MiB would cause ten garbage
    // collections per second.
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

  #finish(result?: BodyBuffer | Problem): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#freeDecoder();
    if (result !== this.#inflated) this.#inflated.free();
    this.#sink.left();
    if (result !== undefined && !this.#isCancelled) this.#sink.done(result);
  }

  /**
   * Frees the decoder's window. Node frees the window of a zstd decoder only at a garbage
   * collection, so 180 bodies could use 970 MB. `reset` throws if an error has closed the stream.
   * In that case, an unused allocation of the same size triggers the garbage collection.
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
  if (coding === "zstd") return zstdWindowBytes(compressed);
  return coding === "br" ? 2 ** brotliWindowBits(compressed[0]!) : DEFLATE_WINDOW_BYTES;
}

export interface UnpackingWork extends QueuedWork {
  /** The value may change while the work has a slot. */
  readonly isKnown: boolean;
  readonly bytesLeft: number;
}

export interface InflationWork extends UnpackingWork {
  readonly memoryBytes: number;
}

/** Two bodies at a time are twice as fast as many at a time. */
const slots = 2;
/**
 * The limit for all bodies together. A project may use half of this memory. All bodies without a
 * key may also use half of it.
 */
const memoryBytesMax = 100_663_296;

export class InflationPool {
  readonly #queue: FairQueue<InflationWork>;
  readonly #begun = new Map<InflationWork, string>();
  readonly #memoryOf = new Map<string, number>();
  #memoryBytes = 0;

  constructor(monotonicMs: () => number) {
    this.#queue = new FairQueue({
      slots,
      rank: ({ bytesLeft }) => bytesLeft,
      mayRun: (work) => this.#mayRun(work),
      monotonicMs,
    });
  }

  add(work: InflationWork): void {
    this.#queue.add(work);
  }

  began(work: InflationWork): void {
    if (!this.#begun.has(work)) this.#count(work, 1);
  }

  again(work: InflationWork): void {
    if (!this.#begun.has(work)) return;
    this.#count(work, -1);
    this.#count(work, 1);
    this.#queue.again(work);
  }

  /** Call this only when the thread pool has no chunk of the work. */
  leave(work: InflationWork): void {
    if (this.#begun.has(work)) this.#count(work, -1);
    this.#queue.leave(work);
  }

  #mayRun(work: InflationWork): boolean {
    if (!work.isKnown) for (const { isKnown } of this.#queue.running) if (!isKnown) return false;
    if (this.#begun.has(work) || this.#memoryBytes === 0) return true;
    const own = this.#memoryOf.get(holderOf(work)) ?? 0;
    return (
      this.#memoryBytes + work.memoryBytes <= memoryBytesMax &&
      (own === 0 || own + work.memoryBytes <= memoryBytesMax / 2)
    );
  }

  #count(work: InflationWork, count: 1 | -1): void {
    const holder = this.#begun.get(work) ?? holderOf(work);
    if (count > 0) this.#begun.set(work, holder);
    else this.#begun.delete(work);
    const bytes = count * work.memoryBytes;
    this.#memoryBytes += bytes;
    const own = (this.#memoryOf.get(holder) ?? 0) + bytes;
    if (own > 0) this.#memoryOf.set(holder, own);
    else this.#memoryOf.delete(holder);
  }
}

function holderOf({ isKnown, group }: InflationWork): string {
  return isKnown ? group : "?";
}
