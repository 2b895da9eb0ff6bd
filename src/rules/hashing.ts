// The hashes of the rules: of values, and of distinct ids for samples.

import type { Buffer } from "node:buffer";
import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { Ascii } from "../platform/base/ascii.ts";

/** Replaces values by their HMAC with the project's secret. */
export class ValueHash {
  readonly secret: Uint8Array;
  readonly #key: KeyObject;

  constructor(secret: Uint8Array) {
    this.secret = secret;
    this.#key = createSecretKey(secret);
  }

  /** Returns 64 hexadecimal digits. */
  of(text: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(text).digest("hex");
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
