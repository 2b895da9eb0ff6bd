import { addressOfText } from "../../../platform/base/addresses.ts";

/** No chain of proxies is that long, but a client may send a longer header. */
const hopsMax = 32;
const cachedMax = 4_096;
/** Longer texts are rare, and `cachedMax` of them would use 64 MiB. */
const cachedTextMax = 128;
/** An IPv6 address with a zone and a port, brackets, quotes and blanks. */
const entryCharsMax = 128;

/**
 * Returns a function that finds the client in the lines of X-Forwarded-For, joined by commas. Each
 * proxy appends its peer, so the client is the first untrusted address from the right; a client may
 * have written the text before it. If all are trusted, it is the last address read.
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
 * Reads any form that proxies write, with or without quotes, port, brackets and zone. Returns ""
 * for no address.
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
