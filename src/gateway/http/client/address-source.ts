// Finds the client of a request. If the socket's peer is a trusted proxy, the client is the address
// in the PROXY header or in X-Forwarded-For. Otherwise, the peer is the client.

import {
  addressOfText,
  createAddressReader,
  createTrust,
  type Network,
} from "../../../platform/base/addresses.ts";
import type { Log } from "../../../platform/base/log.ts";
import { isKnownBot } from "../../../rules/bots.ts";
import type { HttpRequest, HttpResponse } from "../uws.ts";
import { clientName } from "./client-name.ts";
import type { ConnectionId } from "./connection-id.ts";
import { ConnectionLimits, type OpenConnection, siteOf } from "./connection-limits.ts";
import { type NewConnection, NewConnections } from "./new-connections.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

export const proxyProtocolNeedsAddon =
  "PENSTOCK_PROXY_PROTOCOL: needs the connection addon, which is not built or does not load";

export interface AddressSourceConfig {
  readonly recordIp: boolean;
  readonly connectionsMax?: number | undefined;
  readonly addressConnectionsMax?: number | undefined;
  readonly trustedProxies?: readonly Network[] | undefined;
  readonly proxyProtocol?: boolean | undefined;
}

/** Headers added by proxies that share connections among clients. No client can remove them. */
const proxyHeaders = ["x-forwarded-for", "forwarded", "via"];

interface AddressSourceParts {
  readonly connectionId: ConnectionId | undefined;
  readonly unread: UnreadAnswers | undefined;
  readonly log: Pick<Log, "error">;
}

export class AddressSource {
  readonly limits: ConnectionLimits;
  readonly opening = new NewConnections<HttpResponse>(setImmediate);
  readonly #peers: ConnectionAddresses<HttpResponse>;
  readonly #clientOf: (response: HttpResponse, request: HttpRequest) => string;

  /** Throws if the settings need `connectionId`, but it is undefined. */
  constructor(config: AddressSourceConfig, parts: AddressSourceParts) {
    const { recordIp, trustedProxies = [], proxyProtocol = false } = config;
    const hasProxies = trustedProxies.length > 0;
    // uWS accepts a PROXY header before every request, but only a connection's first header is from
    // the proxy. A client may have sent the later headers.
    if (recordIp && proxyProtocol && hasProxies && parts.connectionId === undefined)
      throw new Error(proxyProtocolNeedsAddon);
    const trusts = hasProxies ? createTrust(trustedProxies) : () => false;
    this.limits = new ConnectionLimits({
      connectionsMax: config.connectionsMax ?? Number.POSITIVE_INFINITY,
      addressConnectionsMax: config.addressConnectionsMax ?? Number.POSITIVE_INFINITY,
      isProxy: trusts,
      unread: parts.unread,
    });
    const text = createAddressReader();
    const { connectionId, log } = parts;
    const atFirstRequest = (response: HttpResponse, peer: string): string =>
      trusts(peer) ? text(response.getProxiedRemoteAddress()) || peer : peer;
    const peers = new ConnectionAddresses<HttpResponse>({
      connectionId: connectionId ?? (() => 0),
      read: (response) => text(response.getRemoteAddress()),
      atFirstRequest: connectionId && proxyProtocol && hasProxies ? atFirstRequest : undefined,
      distrusted: () =>
        log.error(
          {},
          "connection addon: two connections had the same id, so the gateway now reads the client address for each request",
        ),
      ...{ limits: this.limits, opening: this.opening },
    });
    this.#peers = peers;
    this.#clientOf = hasProxies ? throughProxies(peers, trusts) : (response) => peers.of(response);
  }

  /** Call this with `app.filter` on every app. */
  follow(response: HttpResponse, change: number): void {
    this.#peers.follow(response, change);
  }

  /**
   * Returns "" if the address is unknown. Call this once with every request, while its head is
   * being handled. The other methods apply to the request of the last call.
   */
  of(response: HttpResponse, request: HttpRequest): string {
    return this.#clientOf(response, request);
  }

  get connection(): OpenConnection | undefined {
    return this.#peers.connection;
  }

  /**
   * Returns whether a proxy may have read the head. True for a connection's first request. For
   * later requests, the headers of the first request decide.
   */
  isReadByOthers(request: HttpRequest): boolean {
    const { connection, wasFirst } = this.#peers;
    if (connection === undefined) return isFromProxy(request);
    if (!wasFirst) return connection.isShared;
    connection.isShared = isFromProxy(request);
    return true;
  }

  agentOf(request: HttpRequest, isRead: boolean): string {
    const { connection } = this.#peers;
    if (connection === undefined || connection.isShared) return request.getHeader("user-agent");
    if (isRead) {
      const agent = request.getHeader("user-agent");
      connection.agent = clientName(agent);
      connection.isBot = isKnownBot(agent);
    }
    return connection.agent;
  }

  /**
   * On a connection of one client, later requests count as requests without an Expect header if no
   * earlier request had one. The header of a long body is always read.
   */
  expects(request: HttpRequest, { isRead, isLong }: { isRead: boolean; isLong: boolean }): boolean {
    const { connection } = this.#peers;
    if (!isRead && !isLong && connection?.isShared === false && !connection.expects) return false;
    const expects = request.getHeader("expect") !== "";
    if (expects && connection !== undefined) connection.expects = true;
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
  // getHeader returns only the first line. HAProxy adds its line after the client's line.
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
/** `cachedMax` of the longest headers would use 64 MiB. */
const cachedTextMax = 128;
const entryCharsMax = 128;

/**
 * `text` has the lines of X-Forwarded-For, joined by commas. The client is the first untrusted
 * address from the right, because a client may have written the addresses to the left.
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
  /** Called at the first request, with the address of the peer. Returns the address that counts. */
  readonly atFirstRequest?: ((response: Response, address: string) => string) | undefined;
  readonly distrusted?: (() => void) | undefined;
  readonly limits: ConnectionLimits;
  readonly opening?: NewConnections<Response> | undefined;
}

/** Reading an address from uWS takes longer than routing a request, so addresses are cached. */
export class ConnectionAddresses<Response extends NewConnection> {
  readonly #options: ConnectionAddressesOptions<Response>;
  readonly #connections = new Map<number, OpenConnection>();
  readonly #silent = new Set<number>();
  #isTrusted = true;
  #wasFirst = false;
  #last: OpenConnection | undefined;

  constructor(options: ConnectionAddressesOptions<Response>) {
    this.#options = options;
  }

  get connection(): OpenConnection | undefined {
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
    const id = this.#isTrusted ? connectionId(response) : 0;
    if (change < 0) {
      const closed = this.#connections.get(id);
      this.#connections.delete(id);
      this.#silent.delete(id);
      opening?.closed(id);
      limits.closed(closed);
      return;
    }
    if (this.#connections.has(id)) {
      // The earlier connection may have closed without a report, and must not be touched.
      opening?.closed(id);
      this.#distrust();
    }
    const isKnown = this.#isTrusted && id !== 0;
    const connection = isKnown ? limits.connectionOf(read(response), response) : undefined;
    if (connection !== undefined) {
      this.#connections.set(id, connection);
      this.#silent.add(id);
    }
    // `close` calls `follow` again, for the connection that it closes.
    if (limits.opened(connection) !== undefined) response.close();
    else if (connection !== undefined)
      opening?.opened(response, { id, address: siteOf(connection.address) });
  }

  /** Call this once with every request. */
  of(response: Response): string {
    const { connectionId, read, atFirstRequest } = this.#options;
    const id = connectionId(response);
    this.#wasFirst = this.#silent.size > 0 && this.#silent.delete(id);
    const held = this.#connections.get(id);
    this.#last = held;
    if (held === undefined) return atFirstRequest === undefined ? read(response) : "";
    if (this.#wasFirst && atFirstRequest !== undefined) {
      const address = atFirstRequest(response, held.address);
      if (address !== held.address) this.#options.limits.moved(held, address);
    }
    return held.address;
  }

  #distrust(): void {
    this.#isTrusted = false;
    this.#connections.clear();
    this.#silent.clear();
    this.#options.limits.forgetAddresses();
    this.#options.opening?.resumeAll();
    this.#options.distrusted?.();
  }
}
