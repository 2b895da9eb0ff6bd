// Reads from X-Forwarded-For the client's address, as reported by trusted proxies. Each proxy
// appends the address of its peer, so the text is read from its right end. Everything to the left
// of the first untrusted address may be written by a client.

import { addressOfText } from "../../../platform/base/addresses.ts";

/**
 * Maximum number of entries that are read. No chain of proxies is that long, but a client may send
 * a header that looks like a longer one.
 */
const hopsMax = 32;
const cachedMax = 4_096;
/** Texts of more characters are not cached: they are rare, and 4,096 of them would be 64 MiB. */
const cachedTextMax = 128;
/** The longest entry: an IPv6 address with a zone and a port, brackets, quotes and blanks. */
const entryCharsMax = 128;

/**
 * Returns a function that takes all lines of the header as one text, in order, separated by commas.
 * It returns the first untrusted address from the right. If there is none, it returns the last
 * trusted one before the text's beginning or before an entry that is not an address; "" if there is
 * no address.
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
 * brackets or not, with a zone or not; with a port or not. Returns the address in the form of
 * addresses.ts, "" if the entry has none.
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
