// Whose request it is: the socket's peer; with trusted proxies, whom they name by PROXY protocol or X-Forwarded-For. Puts the
// parts together and holds no rule of its own. A peer that is not trusted is the client, whatever it sends.

import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { createAddressReader } from "./client-address.ts";
import { createConnectionAddresses } from "./connection-addresses.ts";
import type { ConnectionId } from "./connection-id.ts";
import { createForwardedFor } from "./forwarded-for.ts";
import { createTrust, type Network } from "./trusted-proxies.ts";

export const proxyProtocolNeedsAddon =
  "PENSTOCK_PROXY_PROTOCOL: needs the connection addon, which is not built or does not load";

export interface AddressSourceConfig {
  readonly recordIp: boolean;
  /** None unless given. */
  readonly trustedProxies?: readonly Network[] | undefined;
  readonly proxyProtocol?: boolean | undefined;
}

export interface AddressSource {
  /** For app.filter, of every app: it is to see every connection open and close. Undefined when there is nothing to see. */
  readonly follow: ((response: HttpResponse, change: number) => void) | undefined;
  /** The client's address, "" for none. To be called with every request, while its head is being handled. */
  of(response: HttpResponse, request: HttpRequest): string;
}

type Peers = Pick<AddressSource, "follow"> & { of(response: HttpResponse): string };

export interface AddressSourceParts {
  readonly connectionId: ConnectionId | undefined;
  readonly log: { error(fields: object, message: string): void };
}

/** Throws when the settings cannot be kept without `connectionId`. */
export function createAddressSource(
  config: AddressSourceConfig,
  { connectionId, log }: AddressSourceParts,
): AddressSource {
  const { recordIp, trustedProxies = [], proxyProtocol = false } = config;
  if (!recordIp) return { follow: undefined, of: () => "" };
  const text = createAddressReader();
  const read = (response: HttpResponse) => text(response.getRemoteAddress());
  if (trustedProxies.length === 0) return peers(read, connectionId);
  const trusts = createTrust(trustedProxies);
  if (!proxyProtocol) return throughProxies(peers(read, connectionId), trusts);
  // uWS takes a PROXY header before every request of a connection. Only the first can be the proxy's: a proxy that passes
  // bytes on passes those of its client on too. So without a way to tell first requests there is no safe way to read it.
  if (connectionId === undefined) throw new Error(proxyProtocolNeedsAddon);
  const proxied = (response: HttpResponse, peer: string) =>
    trusts(peer) ? text(response.getProxiedRemoteAddress()) || peer : peer;
  const addresses = createConnectionAddresses({
    connectionId,
    read,
    atFirstRequest: proxied,
    distrusted: () => log.error({}, "tell connections apart: two had one id, no address is recorded from now on"),
  });
  return throughProxies(addresses, trusts);
}

function peers(read: (response: HttpResponse) => string, connectionId: ConnectionId | undefined): Peers {
  if (connectionId === undefined) return { follow: undefined, of: read };
  return createConnectionAddresses({ connectionId, read });
}

function throughProxies({ follow, of }: Peers, trusts: (address: string) => boolean): AddressSource {
  const forwardedFor = createForwardedFor(trusts);
  let lines = "";
  // getHeader answers the first of several lines. HAProxy adds a line of its own behind those a client sent, so that one
  // would be the client's to write: all are read.
  const collect = (name: string, value: string): void => {
    if (name === "x-forwarded-for") lines = lines === "" ? value : `${lines},${value}`;
  };
  return {
    follow,
    of: (response, request) => {
      const peer = of(response);
      if (!trusts(peer)) return peer;
      lines = "";
      request.forEach(collect);
      return forwardedFor(lines) || peer;
    },
  };
}
