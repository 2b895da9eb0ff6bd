// The trusted networks, whose hosts may state the address of a client, and the check whether an
// address is in one of them. Independent of headers and connections.

import { BlockList } from "node:net";
import { addressOfText } from "./addresses.ts";

export interface Network {
  readonly address: string;
  /** Number of significant bits of the address. */
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

const networksMax = 256;
const cachedMax = 4_096;

/**
 * Parses a comma-separated list of addresses and CIDR networks; "" means no network. Throws an
 * Error that lists every invalid part.
 */
export function networksOf(text: string): readonly Network[] {
  if (text.trim() === "") return [];
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > networksMax)
    throw new Error(`must be at most ${networksMax} networks (got ${parts.length})`);
  const networks = parts.map(networkOf);
  const faulty = parts
    .filter((_, place) => networks[place] === undefined)
    .map((part) => `"${part}"`);
  if (faulty.length > 0)
    throw new Error(`must be addresses or networks such as 10.0.0.0/8 (got ${faulty.join(", ")})`);
  return networks.filter((network) => network !== undefined);
}

function networkOf(part: string): Network | undefined {
  const [, written = "", bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(part) ?? [];
  const address = addressOfText(written);
  // IPv4 addresses written as IPv6 are rejected: it would be unclear whether the prefix counts 32
  // or 128 bits.
  if (address === "" || address.includes(":") !== written.includes(":")) return undefined;
  const family = address.includes(":") ? "ipv6" : "ipv4";
  const prefixMax = family === "ipv6" ? 128 : 32;
  const prefix = bits === undefined ? prefixMax : Number(bits);
  return prefix > prefixMax ? undefined : { address, prefix, family };
}

/**
 * Returns a function that checks whether an address is in one of the networks. Addresses must have
 * the text form of addresses.ts.
 */
export function createTrust(networks: readonly Network[]): (address: string) => boolean {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  const cached = new Map<string, boolean>();
  return (address) => {
    const known = cached.get(address);
    if (known !== undefined) return known;
    const isTrusted =
      address !== "" && list.check(address, address.includes(":") ? "ipv6" : "ipv4");
    if (cached.size >= cachedMax) cached.clear();
    cached.set(address, isTrusted);
    return isTrusted;
  };
}
