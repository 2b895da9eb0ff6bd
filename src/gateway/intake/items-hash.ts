// Computes a name for some items of a body, so that they are known again when they come in another
// body. The name is a hash of their bytes, and of nothing that stands between them, so it stays the
// same when other items between them are missing.

import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";

/**
 * Items are copied together up to this many bytes, then hashed in one call: to hash an item by
 * itself takes several times as long as to copy it.
 */
const keptBytesMax = 16_384;
/** Follows each item. JSON never holds this byte, so no two lists of items have the same bytes. */
const END = 0;

/** Hashes one list of items after another. */
export class ItemsHash {
  readonly #body: Buffer;
  readonly #kept: Buffer;
  #keptBytes = 0;
  #hash: Hash | undefined = undefined;

  constructor(body: Buffer) {
    this.#body = body;
    this.#kept = Buffer.allocUnsafe(Math.min(keptBytesMax, body.length + 1));
  }

  /** Begins a list of items. `prefix` is hashed before them. */
  begin(prefix: string): void {
    this.#hash = createHash("sha256").update(prefix);
    this.#keptBytes = 0;
  }

  /** Adds the item in the bytes [start, end) of the body. */
  add(start: number, end: number): void {
    const bytes = end - start + 1;
    if (this.#keptBytes + bytes > this.#kept.length) this.#takeIn(this.#kept, 0, this.#keptBytes);
    if (bytes > this.#kept.length) {
      this.#takeIn(this.#body, start, end);
    } else {
      this.#body.copy(this.#kept, this.#keptBytes, start, end);
      this.#keptBytes += bytes - 1;
    }
    this.#kept[this.#keptBytes++] = END;
  }

  end(): string {
    this.#takeIn(this.#kept, 0, this.#keptBytes);
    const digest = this.#hash?.digest("base64url") ?? "";
    this.#hash = undefined;
    return digest;
  }

  #takeIn(bytes: Buffer, start: number, end: number): void {
    this.#hash?.update(bytes.subarray(start, end));
    this.#keptBytes = 0;
  }
}
