// Formats IP addresses. Every result is a new string, because a substring of a header would keep
// the whole header in memory.

import { BlockList, isIPv4, isIPv6 } from "node:net";

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
const IPV6_GROUPS = 8;
const CACHED_MAX = 8_192;

export function createAddressReader(): (address: ArrayBuffer) => string {
  const cached = new Map<number, string>();
  return (address) => {
    const bytes = new Uint8Array(address);
    if (bytes.length === IPV4_BYTES) return cachedIpv4(cached, bytes, 0);
    if (bytes.length !== IPV6_BYTES) return "";
    return isIpv4Mapped(bytes)
      ? cachedIpv4(cached, bytes, IPV6_BYTES - IPV4_BYTES)
      : ipv6Text(bytes);
  };
}

/**
 * Returns an IP address in a uniform spelling. An IPv4-mapped address becomes IPv4. For all other
 * texts, returns "". This includes addresses with a port, brackets or a zone.
 */
export function addressOfText(text: string): string {
  if (isIPv4(text)) return ipv4Text(Uint8Array.from(text.split("."), Number), 0);
  if (!isIPv6(text) || text.includes("%")) return "";
  const bytes = ipv6Bytes(text);
  return isIpv4Mapped(bytes) ? ipv4Text(bytes, IPV6_BYTES - IPV4_BYTES) : ipv6Text(bytes);
}

export function networkPrefixOf(address: string, bytes = IPV6_BYTES / 2): string {
  return address.includes(":") ? ipv6Bytes(address).subarray(0, bytes).join(".") : address;
}

function cachedIpv4(cached: Map<number, string>, bytes: Uint8Array, at: number): string {
  const key = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  const known = cached.get(key);
  if (known !== undefined) return known;
  const text = ipv4Text(bytes, at);
  if (cached.size >= CACHED_MAX) cached.clear();
  cached.set(key, text);
  return text;
}

function ipv4Text(bytes: Uint8Array, at: number): string {
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
}

function isIpv4Mapped(bytes: Uint8Array): boolean {
  for (let place = 0; place < 10; place++) {
    if (bytes[place] !== 0) return false;
  }
  return bytes[10] === 0xff && bytes[11] === 0xff;
}

function ipv6Text(bytes: Uint8Array): string {
  const groups: number[] = [];
  for (let place = 0; place < IPV6_BYTES; place += 2)
    groups.push((bytes[place]! << 8) | bytes[place + 1]!);
  let runStart = 0;
  let runLength = 1;
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (end < groups.length && groups[end] === 0) end++;
    if (end - start > runLength) [runStart, runLength] = [start, end - start];
  }
  const hex = groups.map((group) => group.toString(16));
  if (runLength < 2) return hex.join(":");
  return `${hex.slice(0, runStart).join(":")}::${hex.slice(runStart + runLength).join(":")}`;
}

function ipv6Bytes(text: string): Uint8Array {
  const [left = [], right = []] = text.split("::").map(ipv6Groups);
  const zeros = new Array<number>(IPV6_GROUPS - left.length - right.length).fill(0);
  return Uint8Array.from(
    [...left, ...zeros, ...right].flatMap((group) => [group >> 8, group & 0xff]),
  );
}

function ipv6Groups(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}

export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

const networksMax = 256;
const cachedMax = 4_096;

/** Parses a comma-separated list of networks. Throws an Error that lists all invalid parts. */
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
  if (address === "" || address.includes(":") !== written.includes(":")) return undefined;
  const family = address.includes(":") ? "ipv6" : "ipv4";
  const prefixMax = family === "ipv6" ? 128 : 32;
  const prefix = bits === undefined ? prefixMax : Number(bits);
  return prefix > prefixMax ? undefined : { address, prefix, family };
}

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
