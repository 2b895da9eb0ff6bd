// Checks the Host header of requests to the live page, and builds the URL host of a port. A foreign
// page can point its own name at our address and then read our pages as its own (DNS rebinding); it
// cannot make a browser send an IP address or `localhost` as the Host.

import { isIP } from "node:net";

/**
 * `host` is the Host header. `ownName` is the host that the admin port listens on, which may be a
 * name.
 */
export function isOwnHost(host: string | undefined, ownName: string): boolean {
  const name = nameOf(host ?? "").toLowerCase();
  return (
    name === "localhost" || (name !== "" && name === ownName.toLowerCase()) || isIP(name) !== 0
  );
}

/** Whether a port that listens on this host is only reachable from this machine. */
export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/**
 * Returns the URL host under which a program on this machine reaches a port that listens on `name`.
 */
export function reachable(name: string): string {
  if (name === "0.0.0.0" || name === "::") return "127.0.0.1";
  return name.includes(":") ? `[${name}]` : name;
}

/**
 * Whether a page of this origin (the Origin header, which may be `null`) comes from the host in the
 * Host header, including the port.
 */
export function isSameHost(origin: string, host: string): boolean {
  try {
    const { protocol, host: own } = new URL(origin);
    return own !== "" && own === new URL(`${protocol}//${host}`).host;
  } catch {
    return false;
  }
}

/** The name in a Host header, without port and brackets; "" if the header is malformed. */
function nameOf(host: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host);
  return match?.[1] ?? match?.[2] ?? "";
}
