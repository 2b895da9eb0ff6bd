// Checks the Host header of the admin port. A foreign page can point its own host name at this
// machine and read our pages (DNS rebinding), but cannot make a browser send an IP address or
// `localhost` as the Host.

import { isIP } from "node:net";

/** Returns whether the Host header names this machine. `ownName` is the host of the admin port. */
export function isOwnHost(host: string | undefined, ownName: string): boolean {
  const name = nameOf(host ?? "").toLowerCase();
  return (
    name === "localhost" || (name !== "" && name === ownName.toLowerCase()) || isIP(name) !== 0
  );
}

export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** Returns the host in the URL of a port, for programs on this machine. */
export function reachable(name: string): string {
  if (name === "0.0.0.0" || name === "::") return "127.0.0.1";
  return name.includes(":") ? `[${name}]` : name;
}

/** Returns whether an Origin header, which may be `null`, matches the Host header. */
export function isSameHost(origin: string, host: string): boolean {
  try {
    const { protocol, host: own } = new URL(origin);
    return own !== "" && own === new URL(`${protocol}//${host}`).host;
  } catch {
    return false;
  }
}

/** Returns the name in a Host header without port and brackets; "" if the header is malformed. */
function nameOf(host: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host);
  return match?.[1] ?? match?.[2] ?? "";
}
