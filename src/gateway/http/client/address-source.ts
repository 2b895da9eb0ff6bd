// Determines the client address of a request. If the connection comes from a trusted proxy, the
// address is in the PROXY header or in X-Forwarded-For. Otherwise, it is the address of the
// connection itself.

import {
  addressOfText,
  createAddressReader,
  createTrust,
  type Network,
} from "../../../platform/base/addresses.ts";
import { agentCharactersMax } from "../../../rules/bots.ts";
import type { HttpRequest, HttpResponse } from "../uws.ts";
import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection, siteOf } from "./connection-limits.ts";
import { type NewConnection, NewConnections } from "./new-connections.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

export interface AddressSourceConfig {
  readonly recordIp: boolean;
  readonly connectionsMax?: number | undefined;
  readonly addressConnectionsMax?: number | undefined;
  readonly trustedProxies?: readonly Network[] | undefined;
  readonly proxyProtocol?: boolean | undefined;
}

/** Proxies that share a connection among clients add these headers. Clients cannot remove them. */
const proxyHeaders = ["x-forwarded-for", "forwarded", "via"];

interface AddressSourceParts {
  readonly connectionId: ConnectionId;
  readonly unread: UnreadAnswers;
}

export class AddressSource {
  readonly limits: ConnectionLimits;
  readonly opening = new NewConnections<HttpResponse>(setImmediate);
  readonly #peers: ConnectionAddresses<HttpResponse>;
  readonly #clientOf: (response: HttpResponse, request: HttpRequest) => string;

  constructor(config: AddressSourceConfig, { connectionId, unread }: AddressSourceParts) {
    const { trustedProxies = [], proxyProtocol = false } = config;
    const hasProxies = trustedProxies.length > 0;
    const trusts = hasProxies ? createTrust(trustedProxies) : () => false;
    this.limits = new ConnectionLimits({
      connectionsMax: config.connectionsMax ?? Number.POSITIVE_INFINITY,
      addressConnectionsMax: config.addressConnectionsMax ?? Number.POSITIVE_INFINITY,
      isProxy: trusts,
      unread,
    });
    const text = createAddressReader();
    // uWS accepts a PROXY header before every request, but only the first header of a connection is
    // from the proxy. The client may have sent the later ones.
    const atFirstRequest = (response: HttpResponse, peer: string): string =>
      trusts(peer) ? text(response.getProxiedRemoteAddress()) || peer : peer;
    const peers = new ConnectionAddresses<HttpResponse>({
      connectionId,
      read: (response) => text(response.getRemoteAddress()),
      atFirstRequest: proxyProtocol && hasProxies ? atFirstRequest : undefined,
      limits: this.limits,
      opening: this.opening,
    });
    this.#peers = peers;
    this.#clientOf = hasProxies ? throughProxies(peers, trusts) : (response) => peers.of(response);
  }

  /** Call this from `app.filter` of every app. */
  follow(response: HttpResponse, change: number): void {
    this.#peers.follow(response, change);
  }

  /**
   * Returns the client address, or "" if it is unknown. Call this exactly once for every request,
   * while its head is being handled. The other methods refer to the request of the last call.
   */
  of(response: HttpResponse, request: HttpRequest): string {
    return this.#clientOf(response, request);
  }

  get connection(): OpenConnection {
    return this.#peers.connection;
  }

  /**
   * Returns whether a proxy may have read the head of the request. For the first request of a
   * connection, this is always true. For a later request, it depends on the headers of the first
   * one.
   */
  isReadByOthers(request: HttpRequest): boolean {
    const { connection, wasFirst } = this.#peers;
    if (!wasFirst) return connection.isShared;
    connection.isShared = isFromProxy(request);
    return true;
  }

  /**
   * Returns the User-Agent of the request. If it is not needed, and the connection belongs to a
   * single client, returns that of the first request, unless it is long.
   */
  agentOf(
    request: HttpRequest,
    { isRead, isNeeded }: { readonly isRead: boolean; readonly isNeeded: boolean },
  ): string {
    const { connection } = this.#peers;
    if (!isNeeded && !isRead && !connection.isShared) return connection.agent;
    const agent = request.getHeader("user-agent");
    if (agent !== connection.agent && agent.length <= agentCharactersMax)
      connection.setAgent(agent);
    return agent;
  }

  /**
   * Returns whether the request has an Expect header. If the connection belongs to a single client
   * and no earlier request had this header, the header is read only for long bodies.
   */
  expects(request: HttpRequest, { isRead, isLong }: { isRead: boolean; isLong: boolean }): boolean {
    const { connection } = this.#peers;
    if (!isRead && !isLong && !connection.isShared && !connection.expects) return false;
    const expects = request.getHeader("expect") !== "";
    if (expects) connection.expects = true;
    return expects;
  }
}

function isFromProxy(request: HttpRequest): boolean {
  return proxyHeaders.some((name) => request.getHeader(name) !== "");
}

function throughProxies(
  peers: ConnectionAddresses<HttpResponse>,
  trusts: (address: string) => boolean,
): (response: HttpResponse, request: HttpRequest) => string {
  const forwardedFor = createForwardedFor(trusts);
  let lines = "";
  // `getHeader` returns only the first line, but HAProxy adds its line after the client's line.
  const collect = (name: string, value: string): void => {
    if (name === "x-forwarded-for") lines = lines === "" ? value : `${lines},${value}`;
  };
  return (response, request) => {
    const peer = peers.of(response);
    if (!trusts(peer)) return peer;
    lines = "";
    request.forEach(collect);
    return forwardedFor(lines) || peer;
  };
}

const hopsMax = 32;
const cachedMax = 4_096;
/** With the longest possible headers, `cachedMax` entries would use 64 MiB. */
const cachedTextMax = 128;
const entryCharsMax = 128;

/**
 * Returns a function that finds the client address in `text`, which contains the lines of
 * X-Forwarded-For, joined by commas. The client is the first untrusted address from the right. The
 * addresses to its left may have been written by the client.
 */
export function createForwardedFor(trusts: (address: string) => boolean): (text: string) => string {
  const cached = new Map<string, string>();
  return (text) => {
    if (text === "") return "";
    const known = cached.get(text);
    if (known !== undefined) return known;
    const client = walk(text, trusts);
    if (text.length > cachedTextMax) return client;
    if (cached.size >= cachedMax) cached.clear();
    cached.set(text, client);
    return client;
  };
}

function walk(text: string, trusts: (address: string) => boolean): string {
  let client = "";
  let end = text.length;
  for (let hop = 0; hop < hopsMax && end >= 0; hop++) {
    const comma = end === 0 ? -1 : text.lastIndexOf(",", end - 1);
    const address = addressOfEntry(text.slice(comma + 1, end));
    if (address === "") return client;
    client = address;
    if (!trusts(address)) return client;
    end = comma;
  }
  return client;
}

function addressOfEntry(entry: string): string {
  const text = entry.trim();
  if (text.length > entryCharsMax) return "";
  const [, unquoted = text] = /^"(.*)"$/.exec(text) ?? [];
  const [, bracketed, dotted] =
    /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{0,5})?$/.exec(unquoted.trim()) ?? [];
  const address = (bracketed ?? dotted ?? unquoted).trim();
  return addressOfText(address.includes(":") ? address.replace(/%.+$/, "") : address);
}

interface ConnectionAddressesOptions<Response extends NewConnection> {
  readonly connectionId: ConnectionId;
  readonly read: (response: Response) => string;
  /**
   * Called with the address of the connection at its first request. Returns the client address to
   * use for the connection.
   */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  readonly limits: ConnectionLimits;
  readonly opening: NewConnections<Response>;
}

/**
 * Caches the addresses of connections, because reading an address from uWS takes longer than
 * routing a request.
 */
export class ConnectionAddresses<Response extends NewConnection> {
  readonly #options: ConnectionAddressesOptions<Response>;
  readonly #connections = new Map<number, OpenConnection>();
  readonly #silent = new Set<number>();
  #wasFirst = false;
  #last!: OpenConnection;

  constructor(options: ConnectionAddressesOptions<Response>) {
    this.#options = options;
  }

  get connection(): OpenConnection {
    return this.#last;
  }

  get size(): number {
    return this.#connections.size;
  }

  get wasFirst(): boolean {
    return this.#wasFirst;
  }

  follow(response: Response, change: number): void {
    const { connectionId, read, limits, opening } = this.#options;
    const id = connectionId(response);
    // The end of a connection with the same id may not have been reported.
    const before = this.#connections.get(id);
    if (before !== undefined) {
      this.#connections.delete(id);
      this.#silent.delete(id);
      opening.closed(id);
      limits.closed(before);
    }
    if (change < 0) return;
    const connection = limits.connectionOf(read(response), response);
    this.#connections.set(id, connection);
    this.#silent.add(id);
    if (limits.opened(connection) !== undefined) response.close();
    else opening.opened(response, { id, address: siteOf(connection.address) });
  }

  /** Call this exactly once for every request. */
  of(response: Response): string {
    const { connectionId, read, atFirstRequest, limits } = this.#options;
    const id = connectionId(response);
    const known = this.#connections.get(id);
    const connection = known ?? limits.connectionOf(read(response), response);
    this.#last = connection;
    this.#wasFirst = known === undefined || (this.#silent.size > 0 && this.#silent.delete(id));
    // The beginning of the connection was not reported, so a PROXY header may be the client's.
    if (known === undefined) return atFirstRequest === undefined ? connection.address : "";
    if (this.#wasFirst && atFirstRequest !== undefined) {
      const address = atFirstRequest(response, connection.address);
      if (address !== connection.address) limits.moved(connection, address);
    }
    return connection.address;
  }
}
