// Computes an id for some items of a body, to recognize them in another body. The id is a hash of
// the items' bytes without the text between them, so it does not change when other items between
// them are missing.

import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";

/**
 * Number of bytes up to which items are copied together and then hashed in one call. To hash a
 * single item takes several times as long as to copy it.
 */
const collectedBytesMax = 16_384;
/**
 * The byte that follows each item. JSON never contains it, so different lists of items have
 * different bytes.
 */
const END = 0;

/** Hashes one list of items after another. */
export class ItemsHash {
  readonly #body: Buffer;
  readonly #collected: Buffer;
  #collectedBytes = 0;
  #hash: Hash | undefined = undefined;

  constructor(body: Buffer) {
    this.#body = body;
    this.#collected = Buffer.allocUnsafe(Math.min(collectedBytesMax, body.length + 1));
  }

  /** Begins a list of items. `prefix` is hashed before them. */
  begin(prefix: string): void {
    this.#hash = createHash("sha256").update(prefix);
    this.#collectedBytes = 0;
  }

  /** Adds the item in the bytes [start, end) of the body. */
  add(start: number, end: number): void {
    const bytes = end - start + 1;
    if (this.#collectedBytes + bytes > this.#collected.length)
      this.#hashBytes(this.#collected, 0, this.#collectedBytes);
    if (bytes > this.#collected.length) {
      this.#hashBytes(this.#body, start, end);
    } else {
      this.#body.copy(this.#collected, this.#collectedBytes, start, end);
      this.#collectedBytes += bytes - 1;
    }
    this.#collected[this.#collectedBytes++] = END;
  }

  end(): string {
    this.#hashBytes(this.#collected, 0, this.#collectedBytes);
    const digest = this.#hash?.digest("base64url") ?? "";
    this.#hash = undefined;
    return digest;
  }

  #hashBytes(bytes: Buffer, start: number, end: number): void {
    this.#hash?.update(bytes.subarray(start, end));
    this.#collectedBytes = 0;
  }
}
