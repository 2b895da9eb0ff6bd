// The bytes of one body that comes in several pieces, in one piece of memory with room behind it for the scanner.
// Grows with what has arrived, never on the word of a header alone.

/** Readable bytes behind every body handed to the intake: simdjson loads whole vectors past the end. */
export const bodyPaddingBytes = 64;

const GROWTH_ON_HINT = 4;
const GROWTH_WITHOUT_HINT = 2;
const CAPACITY_MIN = 16_384;

/**
 * Bytes to make room for when `needed` have arrived. With a hint (a Content-Length, a gzip trailer): the hint, but
 * at most four times what is there, so that a lie reserves nothing. Without: twice what is there.
 */
export function capacityFor(needed: number, hint: number | undefined): number {
  if (hint !== undefined && hint >= needed) return Math.min(hint, Math.max(needed * GROWTH_ON_HINT, CAPACITY_MIN));
  return Math.max(needed * GROWTH_WITHOUT_HINT, CAPACITY_MIN);
}

export class BodyBuffer {
  length = 0;
  #memory: Buffer;
  readonly #hint: number | undefined;

  constructor(firstBytes: number, hint: number | undefined) {
    this.#hint = hint;
    this.#memory = Buffer.allocUnsafeSlow(capacityFor(firstBytes, hint) + bodyPaddingBytes);
  }

  get capacity(): number {
    return this.#memory.length - bodyPaddingBytes;
  }

  /** Copies the bytes in: the only copy of a body on its way to the scanner, growth aside. */
  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.capacity) this.#grow(needed);
    this.#memory.set(bytes, this.length);
    this.length = needed;
  }

  /** The body, over this buffer's own memory. */
  bytes(): Buffer {
    return this.#memory.subarray(0, this.length);
  }

  /**
   * Gives the memory back now and not at the next collection: bodies of 20 MB would pile up till then. Views of
   * it are empty afterwards. Nothing native may still be reading it.
   */
  free(): void {
    freeMemory(this.#memory);
    this.#memory = Buffer.alloc(0);
    this.length = 0;
  }

  #grow(needed: number): void {
    const old = this.#memory;
    this.#memory = Buffer.allocUnsafeSlow(capacityFor(needed, this.#hint) + bodyPaddingBytes);
    this.#memory.set(old.subarray(0, this.length));
    freeMemory(old);
  }
}

function freeMemory(memory: Buffer): void {
  if (memory.buffer instanceof ArrayBuffer && memory.buffer.byteLength > 0) memory.buffer.transfer(0);
}
