// Names the program that sent a request, by its User-Agent, in a few characters: for people who
// look for whoever sends what is refused. It is a stranger's word: nothing is decided by it, and
// nothing more of it is kept.

/** Browsers name each other; the one that is meant is the first of these. */
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"] as const;
const browserNames: Readonly<Record<string, string>> = { Edg: "Edge", OPR: "Opera" };
const charsRead = 256;
/** A name that was made of a header before stays as it is. */
const product = /^([A-Za-z][\w.+-]{0,31})(?:[/ ]([\w.+-]{1,16}))?/;
/** The newer protocol's form: name and version are parted at the last slash. */
const sdk = /^([A-Za-z@][\w.+@/ -]{0,31})\/ *([\w.+-]{1,32})$/;
const keyPattern = /ph[a-z]_/i;

/**
 * Returns a name like `posthog-node 5.9.1` or `Chrome 141`; "" where there is none. It holds nothing
 * of the header's memory.
 */
export function clientName(userAgent: string): string {
  if (userAgent === "") return "";
  const text = userAgent.slice(0, charsRead);
  const name = text.startsWith("Mozilla/") ? browserIn(text) : productIn(text);
  // A part of a string keeps all of it in memory, and this may be kept as long as its connection.
  return Buffer.from(name, "latin1").toString("latin1");
}

/**
 * Returns `posthog-rs 1.2.3` for `posthog-rs/1.2.3`; "" for anything else. It holds nothing of the
 * header's memory.
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
