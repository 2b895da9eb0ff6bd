// The domain under which a site is registered, as the Public Suffix List defines it. Loaded only if
// a project has `cookieless: true`, because the list takes 13 MiB of memory.

import { isIPv6 } from "node:net";
import { getDomain } from "tldts";

/**
 * Returns the registered domain of a host, such as `example.com` of `shop.example.com`, with its
 * port. An address stays an address. PostHog uses the same text in its hash.
 */
export function rootDomainOf(host: string): string {
  if (isIPv6(host)) return hostnameOf(`http://[${host}]`) ?? host;
  const text = host.includes("://") ? host : `http://${host}`;
  const hostname = hostnameOf(text);
  if (hostname === undefined) return text;
  const domain = getDomain(hostname) ?? hostname;
  const { port } = new URL(text);
  return `${domain === "localhost" ? "127.0.0.1" : domain}${port === "" ? "" : `:${port}`}`;
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
