// The hash of values and addresses that rules hide.

import { Buffer } from "node:buffer";
import { createHash, createHmac, createSecretKey, hash, type KeyObject } from "node:crypto";
import { Ascii } from "../platform/base/ascii.ts";

const blockBytes = 64;
const digestBytes = 32;
/** Maximum characters of a text that is hashed without an object of OpenSSL, in half the time. */
const shortCharsMax = 256;

/** Returns the HMAC-SHA-256 of values with one secret. */
export class ValueHash {
  readonly secret: Uint8Array;
  readonly #key: KeyObject;
  /** The padded keys of the two hashes of an HMAC (RFC 2104). The input of the hash follows. */
  readonly #inner = Buffer.alloc(blockBytes + 3 * shortCharsMax);
  readonly #outer = Buffer.alloc(blockBytes + digestBytes);

  constructor(secret: Uint8Array) {
    this.secret = secret;
    this.#key = createSecretKey(secret);
    const isLong = secret.length > blockBytes;
    const block = isLong ? createHash("sha256").update(secret).digest() : secret;
    for (let at = 0; at < blockBytes; at++) {
      this.#inner[at] = (block[at] ?? 0) ^ 0x36;
      this.#outer[at] = (block[at] ?? 0) ^ 0x5c;
    }
  }

  /** Returns 64 hexadecimal digits. */
  of(text: string | Uint8Array): string {
    if (typeof text !== "string" || text.length > shortCharsMax)
      return createHmac("sha256", this.#key).update(text).digest("hex");
    const end = blockBytes + this.#inner.write(text, blockBytes);
    this.#outer.write(hash("sha256", this.#inner.subarray(0, end), "binary"), blockBytes, "latin1");
    return hash("sha256", this.#outer, "hex");
  }

  /** Returns the hash of a JSON value, as JSON. The quotes of a string without escapes do not count. */
  ofJson(value: Buffer): string {
    const text = value[0] === Ascii.Quote ? value.subarray(1, -1) : value;
    return `"${this.of(text)}"`;
  }
}
