// Which Host headers the live page answers to, and by which host a port is reached. A page
// elsewhere can give its own name our address and then read us as its own (DNS rebinding); it
// cannot make a browser send an IP address, or `localhost`, as the Host.

import { isIP } from "node:net";

/** `host` is the Host header. `ownName` is what the admin port listens on, which may be a name. */
export function isOwnHost(host: string | undefined, ownName: string): boolean {
  const name = nameOf(host ?? "").toLowerCase();
  return (
    name === "localhost" || (name !== "" && name === ownName.toLowerCase()) || isIP(name) !== 0
  );
}

/** Whether a port that listens on this name can be reached only by programs on this host. */
export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** The host of a URL by which a program on this host reaches a port that listens on this name. */
export function reachable(name: string): string {
  if (name === "0.0.0.0" || name === "::") return "127.0.0.1";
  return name.includes(":") ? `[${name}]` : name;
}

/**
 * Whether a page of this origin (the header, which may be `null`) came from the host that the Host
 * header names, port included.
 */
export function isSameHost(origin: string, host: string): boolean {
  try {
    const { protocol, host: own } = new URL(origin);
    return own !== "" && own === new URL(`${protocol}//${host}`).host;
  } catch {
    return false;
  }
}

/** The name in a Host header, without port and brackets; "" when the header is not of that form. */
function nameOf(host: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host);
  return match?.[1] ?? match?.[2] ?? "";
}
