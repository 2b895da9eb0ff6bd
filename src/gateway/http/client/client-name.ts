// Names the program that sent a request, in a few characters, by its User-Agent or by the header of
// the newer protocol, so that operators find the sender of refused requests. The name comes from an
// untrusted client: it is only displayed, and the rest of the header is discarded.

/**
 * A browser's User-Agent names other browsers too. The first of these that it contains is the
 * browser.
 */
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"] as const;
const browserNames: Readonly<Record<string, string>> = { Edg: "Edge", OPR: "Opera" };
const charsRead = 256;
/**
 * A name and its version, separated by a slash, or by a space in a name that clientName has
 * returned, so that this name does not change.
 */
const product = /^([A-Za-z][\w.+-]{0,31})(?:[/ ]([\w.+-]{1,16}))?/;
/** The header's form in the newer protocol: the last slash separates name and version. */
const sdk = /^([A-Za-z@][\w.+@/ -]{0,31})\/ *([\w.+-]{1,32})$/;
const keyPattern = /ph[a-z]_/i;

/**
 * Returns a name such as `posthog-node 5.9.1` or `Chrome 141`; "" for none. The name does not keep
 * the header in memory.
 */
export function clientName(userAgent: string): string {
  if (userAgent === "") return "";
  const text = userAgent.slice(0, charsRead);
  const name = text.startsWith("Mozilla/") ? browserIn(text) : productIn(text);
  // A substring keeps the whole string in memory, and this name may be held as long as its
  // connection. So it is copied.
  return Buffer.from(name, "latin1").toString("latin1");
}

/**
 * Returns `posthog-rs 1.2.3` for `posthog-rs/1.2.3`; "" for any other form. The name does not keep
 * the header in memory.
 */
export function sdkName(sdkInfo: string): string {
  const [, name, version] = sdk.exec(sdkInfo) ?? [];
  return name === undefined
    ? ""
    : Buffer.from(named(name.trimEnd(), version), "latin1").toString("latin1");
}

function productIn(text: string): string {
  const [, name, version] = product.exec(text) ?? [];
  return name === undefined ? "" : named(name, version);
}

function named(name: string, version = ""): string {
  const text = `${name} ${version}`.trimEnd();
  return keyPattern.test(text) ? "a key" : text;
}

function browserIn(text: string): string {
  for (const browser of browsers) {
    const at = text.indexOf(`${browser}/`);
    if (at < 0) continue;
    const version = /^\d{1,4}/.exec(text.slice(at + browser.length + 1))?.[0] ?? "";
    return `${browserNames[browser] ?? browser} ${version}`.trimEnd();
  }
  return "Mozilla";
}
