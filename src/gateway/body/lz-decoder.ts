// Decompresses the output of lz-string's compressToBase64, one piece per step. Every phrase of the
// dictionary also occurs in the output, so the dictionary stores only its start and length. Each
// UTF-16 unit is written as UTF-8. A second pass combines surrogates into characters.

import { Ascii } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { BodyBuffer, type BodyMemory } from "./body-buffer.ts";
import { invalidEncoding, noRoomToInflate } from "./body-problems.ts";
import { inflatedBytesAtMost, inflatedProblem } from "./inflate.ts";
import type { StepDecoder } from "./step-decoder.ts";

interface LzOptions {
  readonly bytesMax: number;
  readonly memory: BodyMemory;
  isKnown(): boolean;
  hold(bytes: number): boolean;
}

/** Decoding one step takes a few tenths of a millisecond. */
const STEP_BYTES = 65_536;
const STEP_CODES = 8_192;

const FIRST_BYTES = 16_384;
const COPIED_BYTES_MAX = 4_194_304;
const OVER_LIMIT_BYTES = STEP_BYTES + 65_536;
const UNIT_BYTES_MAX = 3;
/** For shorter copies, copying byte by byte is faster than copyWithin. */
const LONG_COPY_BYTES = 32;

const Code = { Byte: 0, Unit: 1, End: 2, FirstPhrase: 3 } as const;
/** A code and six more bits must fit into a 31-bit integer. */
const CODE_BITS_MAX = 24;

const BLOCK_BITS = 11;
const BLOCK_MASK = (1 << BLOCK_BITS) - 1;
const BLOCK_BYTES = 8 << BLOCK_BITS;

const bitsOf = new Int8Array(256).fill(-1);
for (const [value, letter] of [
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
].entries()) {
  bitsOf[letter.charCodeAt(0)] = Number.parseInt(
    [...value.toString(2).padStart(6, "0")].reverse().join(""),
    2,
  );
}
// Form decoding replaces plus signs by spaces, so a space counts as a plus sign.
bitsOf[Ascii.Space] = bitsOf[Ascii.Plus]!;

export class LzDecoder implements StepDecoder {
  readonly #text: Buffer;
  readonly #options: LzOptions;
  #out: Buffer;
  #length = 0;
  #bytesHeld = 0;
  #read = 0;
  #bits = 0;
  #bitCount = 0;
  #error = "";
  readonly #blocks: Uint32Array[] = [];
  #phrases: number = Code.FirstPhrase;
  #codeBits = 2;
  #room = 2;
  #lastStart = 0;
  #lastBytes = 0;
  #isDecoded = false;
  #hasSurrogates = false;
  readonly #joined = { read: 0, written: 0 };

  /** `text` must not change until `step` returns a result. */
  constructor(text: Buffer, options: LzOptions) {
    this.#text = text;
    this.#options = options;
    this.#out = options.memory.take(FIRST_BYTES);
  }

  get bytesLeft(): number {
    return this.#text.length - this.#read;
  }

  begun(): Buffer {
    return this.#out.subarray(0, this.#length);
  }

  free(): void {
    if (this.#out.length > 0) this.#options.memory.give(this.#out);
    this.#out = Buffer.alloc(0);
    this.#length = 0;
  }

  step(): BodyBuffer | Problem | undefined {
    if (!this.#isDecoded)
      return (
        this.#decode() ?? (this.#isDecoded && !this.#hasSurrogates ? this.#result() : undefined)
      );
    const isJoined = joinSurrogates(this.begun(), this.#joined);
    if (!isJoined) return undefined;
    this.#length = this.#joined.written;
    return this.#result();
  }

  #result(): BodyBuffer {
    const result = BodyBuffer.of(this.#options.memory, this.#out, this.#length);
    this.#out = Buffer.alloc(0);
    this.#length = 0;
    return result;
  }

  #decode(): Problem | undefined {
    const end = this.#length + STEP_BYTES;
    for (let codes = 0; codes < STEP_CODES && this.#length < end && !this.#isDecoded; codes++)
      this.#takeCode();
    const { bytesMax, isKnown, hold } = this.#options;
    if (this.#error !== "") return invalidEncoding("lz64", this.#error);
    const problem = inflatedProblem({
      length: this.#length,
      sent: this.#text.length,
      bytesMax,
      isKnown: isKnown(),
    });
    if (problem !== undefined) return problem;
    const bytes = this.#length + this.#blocks.length * BLOCK_BYTES;
    const isHeld = hold(bytes - this.#bytesHeld);
    this.#bytesHeld = bytes;
    return isHeld ? undefined : noRoomToInflate;
  }

  /**
   * Every code except the first also adds a phrase to the dictionary. The phrase is the previous
   * phrase plus the first character of the current one.
   */
  #takeCode(): void {
    const code = this.#next(this.#codeBits);
    if (this.#error !== "") return;
    if (code === Code.End) {
      this.#end();
      return;
    }
    const start = this.#length;
    if (code < Code.End) {
      const unit = this.#next(code === Code.Byte ? 8 : 16);
      if (this.#error !== "") return;
      this.#write(unit);
      this.#add(start, this.#length - start);
      if (start === 0) {
        this.#codeBits = 3;
        this.#room = 4;
        this.#lastBytes = this.#length;
        return;
      }
    } else if (!this.#repeat(code)) {
      this.#stop("a reference to a missing phrase");
      return;
    }
    this.#add(this.#lastStart, this.#lastBytes + unitBytes(this.#out[start]!));
    this.#lastStart = start;
    this.#lastBytes = this.#length - start;
  }

  #repeat(code: number): boolean {
    const isNext = code === this.#phrases;
    if (code > this.#phrases || this.#lastBytes === 0) return false;
    const block = this.#blocks[code >> BLOCK_BITS];
    const at = (code & BLOCK_MASK) * 2;
    const start = isNext ? this.#lastStart : block![at]!;
    const bytes = isNext ? this.#lastBytes : block![at + 1]!;
    this.#makeRoom(bytes + UNIT_BYTES_MAX);
    this.#copy(start, bytes);
    if (isNext) this.#copy(start, unitBytes(this.#out[start]!));
    return true;
  }

  #copy(start: number, bytes: number): void {
    const out = this.#out;
    const to = this.#length;
    if (bytes < LONG_COPY_BYTES) for (let at = 0; at < bytes; at++) out[to + at] = out[start + at]!;
    else out.copyWithin(to, start, start + bytes);
    this.#length = to + bytes;
  }

  #write(unit: number): void {
    this.#makeRoom(UNIT_BYTES_MAX);
    const out = this.#out;
    if (unit < 0x80) out[this.#length++] = unit;
    else if (unit < 0x800) out[this.#length++] = 0xc0 | (unit >> 6);
    else {
      out[this.#length++] = 0xe0 | (unit >> 12);
      out[this.#length++] = 0x80 | ((unit >> 6) & 0x3f);
    }
    if (unit >= 0x80) out[this.#length++] = 0x80 | (unit & 0x3f);
    if ((unit & 0xf800) === 0xd800) this.#hasSurrogates = true;
  }

  #add(start: number, bytes: number): void {
    const code = this.#phrases++;
    const number = code >> BLOCK_BITS;
    if (number === this.#blocks.length) this.#blocks.push(new Uint32Array(2 << BLOCK_BITS));
    const at = (code & BLOCK_MASK) * 2;
    const block = this.#blocks[number]!;
    block[at] = start;
    block[at + 1] = bytes;
    if (--this.#room > 0) return;
    this.#room = 2 ** this.#codeBits++;
    if (this.#codeBits > CODE_BITS_MAX) this.#stop("too many phrases");
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#out.length) return;
    const { bytesMax, memory } = this.#options;
    const byGrowth = Math.min(Math.max(needed, 4 * this.#out.length), COPIED_BYTES_MAX);
    const byLimit = inflatedBytesAtMost(this.#text.length, bytesMax) + OVER_LIMIT_BYTES;
    const larger = memory.take(Math.max(needed, needed <= COPIED_BYTES_MAX ? byGrowth : byLimit));
    larger.set(this.begun());
    memory.give(this.#out);
    this.#out = larger;
  }

  #next(count: number): number {
    while (this.#bitCount < count) {
      const byte = this.#text[this.#read];
      const bits = byte === undefined ? -1 : bitsOf[byte]!;
      if (bits < 0) {
        const isEnd = byte === undefined || byte === Ascii.Equals;
        this.#stop(isEnd ? "unexpected end of data" : "a character that is not base64");
        return 0;
      }
      this.#read++;
      this.#bits |= bits << this.#bitCount;
      this.#bitCount += 6;
    }
    const value = this.#bits & ((1 << count) - 1);
    this.#bits >>>= count;
    this.#bitCount -= count;
    return value;
  }

  #end(): void {
    const rest = this.#text.toString("latin1", this.#read, this.#read + 8);
    if (/^A?={0,3}[\r\n]{0,2}$/.test(rest)) this.#isDecoded = true;
    else this.#stop("more data after the end");
  }

  #stop(error: string): void {
    this.#error = error;
    this.#isDecoded = true;
  }
}

function unitBytes(first: number): number {
  if (first < 0x80) return 1;
  return first < 0xe0 ? 2 : 3;
}

const JOIN_STEP_BYTES = 131_072;
const LEAD = 0xed;
const HIGH_FIRST = 0xa0;
const LOW_FIRST = 0xb0;

function joinSurrogates(bytes: Buffer, joined: { read: number; written: number }): boolean {
  let { read, written } = joined;
  const end = Math.min(bytes.length, read + JOIN_STEP_BYTES);
  while (read < end) {
    const byte = bytes[read]!;
    const second = byte === LEAD ? bytes[read + 1]! : 0;
    if (second < HIGH_FIRST) {
      bytes[written++] = byte;
      read++;
    } else if (second < LOW_FIRST && bytes[read + 3] === LEAD && bytes[read + 4]! >= LOW_FIRST) {
      const high = ((second & 0x0f) << 6) | (bytes[read + 2]! & 0x3f);
      const low = ((bytes[read + 4]! & 0x0f) << 6) | (bytes[read + 5]! & 0x3f);
      const point = 0x10000 + (high << 10) + low;
      bytes[written++] = 0xf0 | (point >> 18);
      bytes[written++] = 0x80 | ((point >> 12) & 0x3f);
      bytes[written++] = 0x80 | ((point >> 6) & 0x3f);
      bytes[written++] = 0x80 | (point & 0x3f);
      read += 6;
    } else {
      bytes[written++] = 0xef;
      bytes[written++] = 0xbf;
      bytes[written++] = 0xbd;
      read += 3;
    }
  }
  joined.read = read;
  joined.written = written;
  return read >= bytes.length;
}
