// Protects the admin port against DNS rebinding. A web page of an attacker can make its own host
// name point to this machine. But it cannot make a browser send an IP address or `localhost` in the
// Host header.

import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

export function isOwnHost(host: string | undefined, ownName: string): boolean {
  const name = nameOf(host ?? "").toLowerCase();
  return (
    name === "localhost" || (name !== "" && name === ownName.toLowerCase()) || isIP(name) !== 0
  );
}

export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

export function connectable(name: string): string {
  return name === "0.0.0.0" || name === "::" ? "127.0.0.1" : name;
}

export function reachable(name: string): string {
  const host = connectable(name);
  return host.includes(":") ? `[${host}]` : host;
}

function isSameHost(origin: string, host: string): boolean {
  try {
    const { protocol, host: own } = new URL(origin);
    return own !== "" && own === new URL(`${protocol}//${host}`).host;
  } catch {
    return false;
  }
}

export function isForeign({ headers }: Pick<IncomingMessage, "headers">): boolean {
  const { host = "", origin, "sec-fetch-site": site = "same-origin" } = headers;
  return (
    (site !== "same-origin" && site !== "none") ||
    (origin !== undefined && !isSameHost(origin, host))
  );
}

function nameOf(host: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host);
  return match?.[1] ?? match?.[2] ?? "";
}
