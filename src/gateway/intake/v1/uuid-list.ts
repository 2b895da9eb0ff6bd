// The uuids of a request's events, in order of arrival, without repetitions except of the nil and
// the max UUID. Each uuid takes 16 bytes and no string. The time to add one does not depend on the
// uuids that a client chooses, because a hash with a secret key selects their slots.

import type { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { Ascii } from "../../../platform/base/ascii.ts";
import { halfSipHash } from "../../../platform/base/half-sip-hash.ts";
import { hexDigits } from "../../../records/uuid.ts";

/** Number of 32-bit words of a uuid. */
const wordsPerUuid = 4;

export class UuidList {
  /** The indexes of the nil UUID, and those of the max UUID. Several events may have these. */
  readonly blanks: readonly [number[], number[]] = [[], []];
  #length = 0;
  readonly #words: Uint32Array;
  /**
   * A hash table with open addressing. A slot contains the index of a uuid plus 1, or 0 if the slot
   * is free. At most half of the slots are in use.
   */
  readonly #slots: Int32Array;
  readonly #slotShift: number;
  // Each list has its own key, so information that leaks in one request is useless in the next.
  readonly #key = randomFillSync(new Uint32Array(2));
  #probes = 0;

  constructor(capacity: number) {
    const slotBits = Math.max(4, 33 - Math.clz32(capacity));
    this.#words = new Uint32Array(capacity * wordsPerUuid);
    this.#slots = new Int32Array(2 ** slotBits);
    this.#slotShift = 32 - slotBits;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Number of slots examined so far, as a measure of work. Each call of `add` examines at least
   * one.
   */
  get probes(): number {
    return this.#probes;
  }

  /**
   * Adds the uuid in canonical text form at text[start, start + 36), in either case, and returns
   * -1. If an equal uuid was added before, adds nothing and returns the index of that uuid. The nil
   * and the max UUID are always added.
   */
  add(text: Buffer, start: number): number {
    const words = this.#words;
    const first = this.#length * wordsPerUuid;
    words[first] = hexWord(text, start, start + 4);
    words[first + 1] = hexWord(text, start + 9, start + 14);
    words[first + 2] = hexWord(text, start + 19, start + 24);
    words[first + 3] = hexWord(text, start + 28, start + 32);
    const blanks = this.#blanksOf(first);
    if (blanks !== undefined) {
      this.#probes++;
      blanks.push(this.#length++);
      return -1;
    }
    const mask = this.#slots.length - 1;
    for (let slot = this.#slotOf(first); ; slot = (slot + 1) & mask) {
      this.#probes++;
      const taken = this.#slots[slot]! - 1;
      if (taken < 0) {
        this.#slots[slot] = ++this.#length;
        return -1;
      }
      if (this.#areEqual(taken * wordsPerUuid, first)) return taken;
    }
  }

  #blanksOf(first: number): number[] | undefined {
    const words = this.#words;
    const word = words[first]!;
    if (word !== 0 && word !== 0xffff_ffff) return undefined;
    const isBlank =
      words[first + 1] === word && words[first + 2] === word && words[first + 3] === word;
    return isBlank ? this.blanks[word & 1] : undefined;
  }

  /** Writes the 36 characters of the uuid at `index`, in lower case. */
  write(target: Buffer, at: number, index: number): void {
    let next = at;
    for (let digit = 0; digit < 32; digit++) {
      if (digit === 8 || digit === 12 || digit === 16 || digit === 20) target[next++] = Ascii.Minus;
      const word = this.#words[index * wordsPerUuid + (digit >> 3)]!;
      target[next++] = hexDigits[(word >>> (28 - 4 * (digit & 7))) & 0xf]!;
    }
  }

  #slotOf(first: number): number {
    const hash = halfSipHash(this.#key, this.#words, { start: first, count: wordsPerUuid });
    return hash >>> this.#slotShift;
  }

  #areEqual(one: number, other: number): boolean {
    const words = this.#words;
    for (let at = 0; at < wordsPerUuid; at++)
      if (words[one + at] !== words[other + at]) return false;
    return true;
  }
}

/** Returns the 32-bit word of two groups of four hexadecimal digits. */
function hexWord(text: Buffer, start: number, secondStart: number): number {
  return ((fourDigits(text, start) << 16) | fourDigits(text, secondStart)) >>> 0;
}

function fourDigits(text: Buffer, start: number): number {
  let value = 0;
  for (let at = start; at < start + 4; at++) {
    const byte = text[at]!;
    // A letter of either case has bit 6 (0x40), and its four lowest bits are its value less 9. This
    // avoids a branch, which would be unpredictable.
    value = (value << 4) | ((byte & 0xf) + 9 * (byte >>> 6));
  }
  return value;
}
