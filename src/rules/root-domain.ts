// The domain under which a site is registered, as the Public Suffix List defines it. Loaded only if
// a project has `cookieless: true`, because the list takes 13 MiB of memory.

import { Buffer } from "node:buffer";
import { isIPv6 } from "node:net";
import { getDomain } from "tldts";

/** Maximum bytes of a host that is parsed. A DNS name has at most 253 bytes. */
const hostBytesMax = 253 + ":65535".length;
/** The time to parse other characters than ASCII grows with the square of their number. */
const unicodeHostCharsMax = 63;

/**
 * Returns the registered domain of a host or URL, such as `example.com` of `shop.example.com`, with
 * its port. An address stays an address. A host that is invalid or too long is not changed. PostHog
 * uses the same text in its hash.
 */
export function rootDomainOf(host: string): string {
  const text = isIPv6(host) ? `http://[${host}]` : host.includes("://") ? host : `http://${host}`;
  const hostStart = text.indexOf("://") + "://".length;
  const [authority = ""] = /^[^/?#\\]*/.exec(text.slice(hostStart)) ?? [];
  const bytes = Buffer.byteLength(authority);
  const isShort =
    bytes <= hostBytesMax &&
    (bytes === authority.length || authority.length <= unicodeHostCharsMax);
  const url = isShort ? URL.parse(text.slice(0, hostStart) + authority) : null;
  if (url === null) return text;
  const domain = getDomain(url.hostname) ?? url.hostname;
  return `${domain === "localhost" ? "127.0.0.1" : domain}${url.port === "" ? "" : `:${url.port}`}`;
}
