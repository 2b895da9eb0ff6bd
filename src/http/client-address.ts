// A connection's address as text. Only what the socket says: a forwarded-for header is what a client claims.

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
const CACHED_MAX = 8_192;

/** Turns uWS's binary addresses into text: dotted IPv4, also where IPv6 carries it, else RFC 5952. "" for none. */
export function createAddressReader(): (address: ArrayBuffer) => string {
  const cached = new Map<number, string>();
  return (address) => {
    const bytes = new Uint8Array(address);
    if (bytes.length === IPV4_BYTES) return cachedIpv4(cached, bytes, 0);
    if (bytes.length !== IPV6_BYTES) return "";
    return isIpv4Mapped(bytes) ? cachedIpv4(cached, bytes, IPV6_BYTES - IPV4_BYTES) : ipv6Text(bytes);
  };
}

function cachedIpv4(cached: Map<number, string>, bytes: Uint8Array, at: number): string {
  const key = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  const known = cached.get(key);
  if (known !== undefined) return known;
  const text = `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
  if (cached.size >= CACHED_MAX) cached.clear();
  cached.set(key, text);
  return text;
}

function isIpv4Mapped(bytes: Uint8Array): boolean {
  for (let place = 0; place < 10; place++) {
    if (bytes[place] !== 0) return false;
  }
  return bytes[10] === 0xff && bytes[11] === 0xff;
}

/** RFC 5952: no leading zeros, lower case, the first longest run of two or more zero groups as `::`. */
function ipv6Text(bytes: Uint8Array): string {
  const groups: number[] = [];
  for (let place = 0; place < IPV6_BYTES; place += 2) groups.push((bytes[place]! << 8) | bytes[place + 1]!);
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
