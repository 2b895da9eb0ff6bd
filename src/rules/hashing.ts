// The hashes of the rules: of values, and of distinct ids for samples.

import { Buffer } from "node:buffer";
import { createHash, createHmac, createSecretKey, hash, type KeyObject } from "node:crypto";
import { Ascii } from "../platform/base/ascii.ts";

const blockBytes = 64;
const digestBytes = 32;
/** Maximum characters of a text that is hashed without an object of OpenSSL, in half the time. */
const shortCharsMax = 256;

/** Replaces values by their HMAC with the project's secret. */
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

/**
 * Returns a hash of 32 bits over a distinct id in UTF-8. It is the same in all gateways, projects
 * and versions, so that the samples of several rules have the same people.
 */
export function sampleHash(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c_9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x0100_0193);
  // FNV-1a alone hardly mixes the last bytes into the high bits. This is the end of MurmurHash3.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
