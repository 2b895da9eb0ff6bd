// Changes the client's address before it is stored.

import { Buffer } from "node:buffer";
import { isIPv6 } from "node:net";
import { Ascii } from "../platform/base/ascii.ts";
import { dayMs } from "../platform/base/day.ts";
import { ValueHash } from "./hashing.ts";
import type { IpRule } from "./rules-file.ts";

/** Returns the secret salt of a day, as days since 1970 in UTC, or undefined. */
export type SaltOf = (day: number) => Uint8Array | undefined;

/** Number of hexadecimal digits of a hashed address. */
const hashDigits = 32;

export class AddressRule {
  readonly #rule: Exclude<IpRule, "keep">;
  readonly #saltOf: SaltOf;
  /** The hash of each salt, which is forgotten with the salt. */
  readonly #hashes = new WeakMap<Uint8Array, ValueHash>();

  constructor(rule: Exclude<IpRule, "keep">, saltOf: SaltOf = () => undefined) {
    this.#rule = rule;
    this.#saltOf = saltOf;
  }

  /**
   * Returns the address to store; "" if no address may be stored. The address is "" or has the
   * spelling of `addressOfText`.
   */
  storedFor(address: string, receivedAtMs: number): string {
    if (address === "") return "";
    switch (this.#rule) {
      case "drop":
        return "";
      case "truncate":
        return truncated(address);
      case "hash": {
        const salt = this.#saltOf(Math.floor(receivedAtMs / dayMs));
        if (salt === undefined) return "";
        return this.#hashOf(salt).of(address).slice(0, hashDigits);
      }
    }
  }

  #hashOf(salt: Uint8Array): ValueHash {
    let hash = this.#hashes.get(salt);
    if (hash === undefined) {
      hash = new ValueHash(salt);
      this.#hashes.set(salt, hash);
    }
    return hash;
  }
}

/**
 * Returns the network of the address: /24 of IPv4, /48 of IPv6; "" if it is no address. An address of
 * 6to4 (2002::/16) has an IPv4 address after 16 bits, so its network is /40. The beginning of an
 * address in the spelling of `addressOfText` is already its network.
 */
function truncated(address: string): string {
  let separators = 0;
  for (let at = 0; at < address.length; at++) {
    const char = address.charCodeAt(at);
    if (char === Ascii.Dot) {
      if (++separators === 3) return `${address.slice(0, at)}.0`;
    } else if (char === Ascii.Colon) {
      if (++separators < 3 && address.charCodeAt(at + 1) !== Ascii.Colon) continue;
      return ipv6Network(address, at);
    }
  }
  return "";
}

/** `end` is that of the third word, or of the word before `::`. */
function ipv6Network(address: string, end: number): string {
  const isPrefix = end > 0 && !address.startsWith("2002:") && !address.startsWith(":0", end - 2);
  if (isPrefix) return `${address.slice(0, end)}::`;
  const [plain = ""] = address.split("%");
  if (!isIPv6(plain)) return "";
  const words = wordsOf(plain);
  const isMapped = words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff;
  if (isMapped) return `${words[6]! >> 8}.${words[6]! & 255}.${words[7]! >> 8}.0`;
  const network = words.slice(0, 3);
  if (network[0] === 0x2002) network[2]! &= 0xff00;
  while (network.at(-1) === 0) network.pop();
  return `${network.map((word) => word.toString(16)).join(":")}::`;
}

function wordsOf(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const before = partsOf(head);
  const after = tail === undefined ? [] : partsOf(tail);
  const zeros = Math.max(0, 8 - before.length - after.length);
  return [...before, ...new Array<number>(zeros).fill(0), ...after];
}

function partsOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((part) => {
    if (!part.includes(".")) return [Number.parseInt(part, 16)];
    const bytes = Buffer.from(part.split(".").map(Number));
    return [bytes.readUInt16BE(0), bytes.readUInt16BE(2)];
  });
}
