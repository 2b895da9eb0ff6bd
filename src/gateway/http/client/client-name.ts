// Short names of the programs that send requests. With them, operators can find the sender of
// rejected requests. The names come from untrusted clients, so they are only displayed.

/** The order matters, because a browser's User-Agent also contains the names of other browsers. */
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"] as const;
const browserNames: Readonly<Record<string, string>> = { Edg: "Edge", OPR: "Opera" };
const charsRead = 256;
const product = /^([A-Za-z][\w.+-]{0,31})(?:[/ ]([\w.+-]{1,16}))?/;
const sdk = /^([A-Za-z@][\w.+@/ -]{0,31})\/ *([\w.+-]{1,32})$/;
const keyPattern = /ph[a-z]_/i;

/** Returns a name such as `posthog-node 5.9.1` or `Chrome 141`, or "" if none is recognized. */
export function clientName(userAgent: string): string {
  if (userAgent === "") return "";
  const text = userAgent.slice(0, charsRead);
  const name = text.startsWith("Mozilla/") ? browserIn(text) : productIn(text);
  // This copies the name, because a substring would keep the whole header in memory.
  return Buffer.from(name, "latin1").toString("latin1");
}

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
