// Reads from X-Forwarded-For who the client is, as told by proxies that are trusted. Each proxy
// appends the address it was called from, so the text is read from its right end. What stands left
// of the first address that is not trusted is whatever a client wrote.

import { addressOfText } from "../../../platform/base/addresses.ts";

/**
 * At most this many entries are looked up. No chain of proxies is so long, but a client may write a
 * header that looks like a longer one.
 */
const hopsMax = 32;
const cachedMax = 4_096;
/** Texts of more characters are not cached: they are rare, and 4,096 of them would be 64 MiB. */
const cachedTextMax = 128;
/** The longest entry: an IPv6 address with a zone and a port, brackets, quotes and blanks. */
const entryCharsMax = 128;

/**
 * The function takes all lines of the header as one text, in their order, with commas between. It
 * returns the first address from the right that is not trusted. Where there is none, it returns the
 * last trusted one before the text's beginning or before something that is no address; "" where
 * there is no address.
 */
export function createForwardedFor(trusts: (address: string) => boolean): (text: string) => string {
  const cached = new Map<string, string>();
  return (text) => {
    if (text === "") return "";
    const known = cached.get(text);
    if (known !== undefined) return known;
    const client = walk(text, trusts);
    if (text.length > cachedTextMax) return client;
    if (cached.size >= cachedMax) cached.clear();
    cached.set(text, client);
    return client;
  };
}

function walk(text: string, trusts: (address: string) => boolean): string {
  let client = "";
  let end = text.length;
  for (let hop = 0; hop < hopsMax && end >= 0; hop++) {
    const comma = end === 0 ? -1 : text.lastIndexOf(",", end - 1);
    const address = addressOfEntry(text.slice(comma + 1, end));
    if (address === "") return client;
    client = address;
    if (!trusts(address)) return client;
    end = comma;
  }
  return client;
}

/**
 * Reads an entry in any form that proxies write: an address, in double quotes or not; IPv6 in
 * brackets or not, with a zone or not; with a port or not. Returns the address as addresses.ts
 * writes it, "" if the entry has none.
 */
function addressOfEntry(entry: string): string {
  const text = entry.trim();
  if (text.length > entryCharsMax) return "";
  const [, unquoted = text] = /^"(.*)"$/.exec(text) ?? [];
  const [, bracketed, dotted] =
    /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{0,5})?$/.exec(unquoted.trim()) ?? [];
  const address = (bracketed ?? dotted ?? unquoted).trim();
  return addressOfText(address.includes(":") ? address.replace(/%.+$/, "") : address);
}
