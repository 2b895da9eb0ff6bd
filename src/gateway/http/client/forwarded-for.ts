// Reads the client's address from X-Forwarded-For, as reported by trusted proxies. Each proxy
// appends the address of its peer, so the text is read from its right end. A client may have
// written all text to the left of the first untrusted address.

import { addressOfText } from "../../../platform/base/addresses.ts";

/**
 * Maximum number of entries that are read. No chain of proxies is that long, but a client may send
 * a longer header.
 */
const hopsMax = 32;
const cachedMax = 4_096;
/**
 * Maximum number of characters of a cached text. Longer texts are rare, and `cachedMax` of them
 * would use 64 MiB.
 */
const cachedTextMax = 128;
/**
 * Maximum number of characters of an entry: an IPv6 address with a zone and a port, brackets,
 * quotes and blanks.
 */
const entryCharsMax = 128;

/**
 * Returns a function that finds the client in the text of the header, which must have all lines in
 * order, separated by commas. The function returns the first untrusted address from the right. If
 * all addresses are trusted, it returns the last one before the text's beginning or before an entry
 * that is not an address. It returns "" if there is no address.
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
 * Returns the address of an entry in the form of addresses.ts; "" if the entry has no address.
 * Reads any form that proxies write: with or without double quotes, with or without a port; IPv6
 * also with or without brackets or a zone.
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
