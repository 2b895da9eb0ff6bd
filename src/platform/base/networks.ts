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

/** Parses a comma-separated list. Throws an Error that lists every invalid part. */
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
  // It would be unclear whether the prefix of an IPv4 address in IPv6 form counts 32 or 128 bits.
  if (address === "" || address.includes(":") !== written.includes(":")) return undefined;
  const family = address.includes(":") ? "ipv6" : "ipv4";
  const prefixMax = family === "ipv6" ? 128 : 32;
  const prefix = bits === undefined ? prefixMax : Number(bits);
  return prefix > prefixMax ? undefined : { address, prefix, family };
}

/** Returns whether an address, in the text form of this file, is in one of the networks. */
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
