// Checks the Host header of requests to the admin port against DNS rebinding. A foreign page can
// point its own host name at this machine and read our pages. It cannot make a browser send an IP
// address or `localhost` as the Host.

import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

/** Returns whether a Host header names this machine. `ownName` is the host of the admin port. */
export function isOwnHost(host: string | undefined, ownName: string): boolean {
  const name = nameOf(host ?? "").toLowerCase();
  return (
    name === "localhost" || (name !== "" && name === ownName.toLowerCase()) || isIP(name) !== 0
  );
}

export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** Returns the host for connecting from this machine to a port that listens on `name`. */
export function connectable(name: string): string {
  return name === "0.0.0.0" || name === "::" ? "127.0.0.1" : name;
}

/** Returns the host for connecting from this machine, as written in a URL. */
export function reachable(name: string): string {
  const host = connectable(name);
  return host.includes(":") ? `[${host}]` : host;
}

/** Returns whether an Origin header matches the Host header. An Origin may be `null`. */
function isSameHost(origin: string, host: string): boolean {
  try {
    const { protocol, host: own } = new URL(origin);
    return own !== "" && own === new URL(`${protocol}//${host}`).host;
  } catch {
    return false;
  }
}

/** Returns whether a browser sent a request for a page of another site. */
export function isForeign({ headers }: Pick<IncomingMessage, "headers">): boolean {
  const { host = "", origin, "sec-fetch-site": site = "same-origin" } = headers;
  return (
    (site !== "same-origin" && site !== "none") ||
    (origin !== undefined && !isSameHost(origin, host))
  );
}

/** Returns the name in a Host header, without port and brackets; "" if the header is malformed. */
function nameOf(host: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host);
  return match?.[1] ?? match?.[2] ?? "";
}
